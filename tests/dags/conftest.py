"""An Airflow home of its own, before anything of Airflow is imported."""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "false"
os.environ["PYTHONPATH"] = f"{ROOT / 'jobs'}:{ROOT / 'dags'}"
