"""The papers' algorithms, in pure Python and numpy: no Spark, no Airflow, no disk."""
