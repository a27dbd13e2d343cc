# A Redis, or the Sentinel beside it: node.sh redis-server|redis-sentinel [MASTER]
# Sentinel writes what it learns into its configuration, and lets each Redis write its role into its own. Both are on the data disk,
# and are put there when the machine starts for the first time.
set -e
config=/data/$1.conf
if [ ! -e "$config" ]; then
    cp "/opt/$1.conf" "$config"
    [ -z "$2" ] || echo "replicaof $2 6379" >> "$config"
    sync
    # A Sentinel asks for the replicas when it starts, and then every ten seconds: better when they are there.
    [ "$1" = redis-server ] || sleep 2
else
    # Real machines take longer to boot than Sentinel takes to make another one the master.
    sleep 3
fi
exec "$1" "$config"
