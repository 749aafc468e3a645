"""The pages about streams as a FastAPI application; who asks is the caller's affair. No Airflow, no Spark."""
