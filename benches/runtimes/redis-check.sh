# redis-benchmark does not compare answers. So this compares what the server counted with what it stored.
set -eu
redis-cli info commandstats > /tmp/stats
redis-cli info stats | grep -q '^total_error_replies:0'

calls() {
    sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" /tmp/stats
}

sets=$(calls set)
gets=$(calls get)
incrs=$(calls incr)
sum=$(redis-cli eval '
    local sum = 0
    for _, key in ipairs(redis.call("keys", "counter:*")) do sum = sum + redis.call("get", key) end
    return sum
' 0)
echo "$((sets + gets + incrs)) exchanges"
test "$sum" -gt 0
test "$sum" = "$incrs"
