#!/bin/sh
# Does what the entry point of the real image does with these variables.
set -e
cd /usr/lib/postgresql/*/bin
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  ./initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256
  echo "host all all all scram-sha-256" >> $data/pg_hba.conf
  echo "CREATE DATABASE $POSTGRES_DB" | ./postgres --single -D $data postgres
fi
exec ./postgres -D $data -c listen_addresses='*'
