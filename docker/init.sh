#!/bin/sh
# Prepare Airflow's database and the pool of the DAGs' tasks.
set -eu
length=${#AIRFLOW__API_AUTH__JWT_SECRET}
if [ "$length" -lt 64 ]; then
  echo "TRANSOM_SECRET: must have at least 64 characters; got $length. One is: openssl rand -hex 32" >&2
  exit 1
fi
airflow db migrate
airflow pools set transom "$TRANSOM_SLOTS" "Spark applications at once"
