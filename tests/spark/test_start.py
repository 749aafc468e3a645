"""The class-data archive of set-up is there to cut Java's start; a wrong class path silently voids it."""

import os
import subprocess
from pathlib import Path


def test_java_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    options = properties.read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    script, log = tmp_path / "nothing.py", tmp_path / "classes.log"
    script.write_text("from transom.lake.session import session\nsession('start').stop()\n")
    subprocess.run(
        ["spark-submit", "--properties-file", properties,
         "--driver-java-options", f"{options} -Xlog:class+load:file={log}", script],
        check=True, capture_output=True,
    )  # fmt: skip
    loaded = log.read_text().splitlines()
    archived = [line for line in loaded if "shared objects file (top)" in line]
    assert len(archived) > len(loaded) / 2
