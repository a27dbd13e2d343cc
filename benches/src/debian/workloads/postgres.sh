# PostgreSQL: a server with a process for each connection, B-trees, and a log of all changes.

programs=/usr/lib/postgresql/15/bin
# The server refuses to run as root, which is this script's user in guests but not on the host.
unprivileged() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid daemon --regid daemon --clear-groups "$@"; else "$@"; fi
}
query() { $programs/psql -h /tmp/postgres -U bench -d postgres -Atc "$1"; }
unprivileged mkdir /tmp/postgres

postgres_initdb() { unprivileged $programs/initdb -D /tmp/postgres/data -U bench -A trust --no-sync; }
postgres_initdb_result() { cat /tmp/postgres/data/PG_VERSION; }
part postgres_initdb

cat >> /tmp/postgres/data/postgresql.conf << 'END'
autovacuum = off
listen_addresses = ''
unix_socket_directories = '/tmp/postgres'
END
unprivileged $programs/pg_ctl -D /tmp/postgres/data -w -l /tmp/postgres/log start > /tmp/postgres_start.out

postgres_load() { $programs/pgbench -h /tmp/postgres -U bench -i -s 1 -q postgres; }
postgres_load_result() { query 'SELECT count(*) FROM pgbench_accounts'; }
part postgres_load

# One client and a fixed seed: the transactions and their order are always the same.
postgres_transactions() {
    $programs/pgbench -h /tmp/postgres -U bench -n -c 1 -t 1500 --random-seed=1 postgres
}
postgres_transactions_result() { query 'SELECT count(*), sum(delta), sum(aid) FROM pgbench_history'; }
part postgres_transactions
unprivileged $programs/pg_ctl -D /tmp/postgres/data -m fast stop > /tmp/postgres_stop.out
