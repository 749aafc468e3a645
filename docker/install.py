"""Install Java, Delta's jars and Spark's local settings into a folder of the image: install.py FOLDER."""

import sys
from pathlib import Path

from transom.installation.install import install

folder = Path(sys.argv[1])
install(folder, with_archive=False)
# The image sets its own variables.
(folder / "env").unlink()
(folder / "environment.json").unlink()
# Temporary files of local runs, for any user.
(folder / "tmp").chmod(0o1777)
