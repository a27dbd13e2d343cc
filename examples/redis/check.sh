# What was stored is there, arithmetic adds up, and the append-only file is sound.
set -eu
test "$(redis-cli ping)" = PONG
redis-cli set check:n 0 > /dev/null
i=0
while [ $i -lt 10 ]; do
    redis-cli incrby check:n 7 > /dev/null
    i=$((i + 1))
done
test "$(redis-cli get check:n)" = 70
test "$(redis-cli get round)" -ge 0
redis-cli config set appendonly no > /dev/null
redis-check-aof /var/lib/redis/appendonlydir/appendonly.aof.manifest | tail -n 1
echo "ok: $(redis-cli dbsize) keys, digest $(redis-cli debug digest)"
