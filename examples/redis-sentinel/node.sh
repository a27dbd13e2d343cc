# A Redis, of which n1's is the first master, or a Sentinel that watches over them.
# Sentinels write what they learn into their configuration.
set -e
if [ "$1" = redis ]; then
    exec redis-server --bind 0.0.0.0 --protected-mode no --dir /tmp --save '' --replica-announce-ip "$(hostname)" \
        --repl-diskless-sync-delay 0 ${2:+--replicaof "$2" 6379}
fi
if [ ! -e /tmp/sentinel.conf ]; then
    cat > /tmp/sentinel.conf << END
bind 0.0.0.0
protected-mode no
dir /tmp
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $(hostname)
sentinel monitor everett n1 6379 2
sentinel down-after-milliseconds everett 1000
sentinel failover-timeout everett 3000
END
fi
exec redis-sentinel /tmp/sentinel.conf
