# One round of load: commands drawn from the timeline's seed, then a benchmark's concurrent clients, then what it came to.
set -eu
if [ "$EVERETT_ROUND" = 0 ]; then
    # The server drew its ID while it booted: it follows the boot seed, not the timeline's.
    redis-cli info server | grep -E '^(redis_version|run_id)' | tr -d '\r'
fi

awk -v seed=$((EVERETT_SEED * 100003 + EVERETT_ROUND)) 'BEGIN {
    srand(seed)
    for (i = 0; i < 300; i++) {
        key = int(rand() * 500); value = int(rand() * 1000000); kind = int(rand() * 6)
        if (kind == 0) print "set key:" key " value-" value
        if (kind == 1) print "get key:" key
        if (kind == 2) print "incrby counter:" key % 20 " " value
        if (kind == 3) print "lpush list:" key % 10 " " value
        if (kind == 4) print "sadd set:" key % 10 " " value
        if (kind == 5) print "zadd zset:" key % 10 " " value " member-" key
    }
}' > /tmp/commands
redis-cli < /tmp/commands > /tmp/replies
if grep -E '^(ERR|WRONGTYPE)' /tmp/replies; then
    echo "a command was refused"
    exit 1
fi

redis-benchmark --csv -c 5 -n 200 -r 1000 -d 64 -t set,get,incr > /tmp/benchmark.csv
redis-cli set round "$EVERETT_ROUND" > /dev/null
echo "round $EVERETT_ROUND: $(redis-cli dbsize) keys, digest $(redis-cli debug digest)"
# Real servers idle most of the time; idle vtime costs the host nothing.
sleep 0.2
