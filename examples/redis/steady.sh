# One client that runs a script in the server fifty times a second, on values that the kernel's random numbers decide.
set -eu
start=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
echo "the first value is $start"
exec redis-cli -r -1 -i 0.02 eval '
    local n = redis.call("incr", "rounds")
    local value = (ARGV[1] + n * 7919) % 1000003
    redis.call("set", "key:" .. value % 500, string.rep(value, 20))
    redis.call("zadd", "by-value", value, "member:" .. n % 100)
    redis.call("lpush", "list", value)
    redis.call("ltrim", "list", 0, 99)
    return redis.call("zcard", "by-value")
' 0 "$start" > /tmp/replies
