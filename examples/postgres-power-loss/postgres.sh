# Make the cluster once, then serve it. A data directory that is half made was interrupted by a loss of power.
set -e
bin=/usr/lib/postgresql/15/bin
if [ ! -e /data/made ]; then
    rm -rf /data/cluster
    $bin/initdb -D /data/cluster --auth=trust --no-instructions --no-sync > /dev/null
    echo "host all all 10.0.0.0/16 trust" >> /data/cluster/pg_hba.conf
    sync
    touch /data/made
    sync
fi
# The machine was just switched on: whoever has the number in this file now is not PostgreSQL.
rm -f /data/cluster/postmaster.pid
exec $bin/postgres -D /data/cluster -c listen_addresses='*' -c unix_socket_directories=/tmp -c fsync="$FSYNC" \
    -c shared_buffers=16MB -c max_connections=10 -c recovery_init_sync_method=syncfs
