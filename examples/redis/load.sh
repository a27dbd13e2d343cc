# One round of load: redis-benchmark on keys drawn from the timeline's seed, then what it came to.
set -eu
seed=$((EVERETT_SEED * 1000 + EVERETT_ROUND))
if [ "$EVERETT_ROUND" = 0 ]; then
    # Drawn by the server from the guest kernel's random numbers, which follow the seed as well.
    redis-cli info server | grep -E '^(redis_version|run_id)' | tr -d '\r'
fi
redis-benchmark --seed "$seed" -q --csv -c 4 -n 200 -r 5000 -d 64 -t set,get,incr,lpush,lpop,sadd,zadd > /tmp/round.csv
redis-cli set round "$EVERETT_ROUND" > /dev/null
echo "round $EVERETT_ROUND: $(redis-cli dbsize) keys, digest $(redis-cli debug digest)"
# Real servers idle most of the time; idle vtime costs the host nothing.
sleep 0.2
