# A server and its clients: system calls, the network stack, switches between processes.

redis-server --save '' --dir /tmp --daemonize yes > /tmp/redis-server.out
until redis-cli ping > /dev/null 2>&1; do sleep 0.1; done
redis() { redis-benchmark -q -n 12000 -c 10 -P 4 -t set,get,lpush,zadd; }
# The clients print times, so the result is the number of pushed items instead.
redis_result() { redis-cli llen mylist; }
part redis
redis-cli shutdown nosave
