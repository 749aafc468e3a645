"""The start of Spark: with set-up's class-data archive, which a wrong class path voids, and without
output.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from transom.installation.install import write_settings


def test_java_loads_its_classes_from_the_archive(tmp_path: Path) -> None:
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    options = properties.read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    script, log = tmp_path / "nothing.py", tmp_path / "classes.log"
    script.write_text("from transom.storage.session import session\nsession('start').stop()\n")
    subprocess.run(
        ["spark-submit", "--properties-file", properties,
         "--driver-java-options", f"{options} -Xlog:class+load:file={log}", script],
        check=True, capture_output=True,
    )  # fmt: skip
    loaded = log.read_text().splitlines()
    archived = [line for line in loaded if "shared objects file (top)" in line]
    assert len(archived) > len(loaded) / 2


def test_spark_prints_nothing_if_python_starts_it(tmp_path: Path) -> None:
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"]).read_text()
    write_settings(tmp_path, None)
    own = tmp_path / "own.properties"
    logging = f"log4j2.configurationFile={tmp_path / 'log4j2.properties'}"
    own.write_text(re.sub(r"log4j2\.configurationFile=\S+", lambda _: logging, properties))
    finished = subprocess.run(
        [sys.executable, "-c", "from transom.storage.session import session\nsession('start').stop()\n"],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--properties-file {own} pyspark-shell"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert (finished.stdout, finished.stderr) == ("", "")
