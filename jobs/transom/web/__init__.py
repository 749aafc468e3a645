"""The pages about streams as a FastAPI application; the caller passes the rights of users. No Airflow."""
