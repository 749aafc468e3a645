"""The processes of `make airflow`, without starting them."""

from pathlib import Path
from unittest.mock import patch

import airflow_server


def test_components_that_fork_load_plugins_when_they_start(tmp_path: Path) -> None:
    with patch("airflow_server.subprocess.Popen") as popen, (tmp_path / "log").open("w") as file:
        airflow_server._Components(tmp_path, {}, file, file)
    lazy = {
        call.args[0][3]: call.kwargs["env"]["AIRFLOW__CORE__LAZY_LOAD_PLUGINS"]
        for call in popen.call_args_list
    }
    assert lazy == {"api-server": "True", "scheduler": "False", "dag-processor": "False"}
