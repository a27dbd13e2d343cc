# Every round was done whole.
set -eu
rounds=$(redis-cli get rounds)
test "$rounds" -gt 10
test "$(redis-cli llen list)" -eq "$((rounds < 100 ? rounds : 100))"
echo "$rounds rounds, $(redis-cli dbsize) keys, digest $(redis-cli debug digest)"
