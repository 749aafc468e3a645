"""The start of Spark: with set-up's class-data archive, which a wrong class path voids, and without
output.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark

from transom.installation.install import link_spark_home, write_settings


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


def test_python_starts_spark_without_output_with_settings_of_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a user's folder"
    folder.mkdir()
    (folder / "java").symlink_to(os.environ["JAVA_HOME"])
    link_spark_home(folder)
    # Java goes on without an archive that is missing.
    write_settings(folder, folder / "archive.jsa")
    properties = folder / "spark.properties"
    installed = Path(os.environ["TRANSOM_SPARK_PROPERTIES"]).read_text().splitlines()
    (jars,) = (line for line in installed if line.startswith("spark.jars "))
    properties.write_text(
        re.sub("^spark.jars .*$", lambda _: jars, properties.read_text(), flags=re.MULTILINE)
    )
    program = "import sys\nfrom transom.storage.session import session\nspark = session('start')\n"
    program += "assert spark._jvm.System.getProperty('derby.system.home') == sys.argv[1]\nspark.stop()\n"
    script = '. "$1" && exec "$2" -c "$3" "$4"'
    finished = subprocess.run(
        ["sh", "-c", script, "sh", folder / "env", sys.executable, program, folder / "derby"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert (finished.stdout, finished.stderr) == ("", "")


def test_driver_and_workers_import_compiled_packages_once(tmp_path: Path) -> None:
    """Spark puts zip files on the path of Python, from which each process compiles what it imports."""
    script = tmp_path / "where.py"
    script.write_text(
        "import sys\n"
        "import pyarrow as pa\n"
        "import pyspark, py4j\n"
        "from transom.storage.session import session\n"
        "def places(batches):\n"
        "    import sys, pyspark\n"
        "    for batch in batches:\n"
        "        shared = 'transom.features.ingest.stage' in sys.modules\n"
        "        yield pa.RecordBatch.from_pydict({'text': [f'{pyspark.__file__} {shared}']})\n"
        "spark = session('where')\n"
        "print(pyspark.__file__, py4j.__file__)\n"
        "print(spark.range(0, 1, 1, 1).mapInArrow(places, 'text string').collect()[0].text)\n"
        "spark.stop()\n"
    )
    done = subprocess.run(
        ["spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"], script],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    packages = Path(pyspark.__file__).parents[1]
    module = packages / "pyspark" / "__init__.py"
    assert done.stdout.splitlines() == [f"{module} {packages / 'py4j' / '__init__.py'}", f"{module} True"]
