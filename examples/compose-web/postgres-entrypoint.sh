#!/bin/sh
# What the entrypoint of the official image does with its best-known variables.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    password=$(mktemp)
    printf '%s\n' "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}" > "$password"
    initdb --username "${POSTGRES_USER:-postgres}" --pwfile "$password" --auth-host scram-sha-256 --no-instructions
    rm "$password"
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    if [ "${POSTGRES_DB:-postgres}" != postgres ]; then
        echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres > /dev/null
    fi
    # The loss of power that comes later must find all of this.
    sync
fi
exec "$@" -c listen_addresses='*' -c unix_socket_directories=/tmp
