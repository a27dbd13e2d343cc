# A round of commands drawn from the seed.
set -eu
test "$EVERETT_ROUND" != 0 || redis-cli info server | grep ^run_id | tr -d '\r'
awk -v seed=$((EVERETT_SEED * 1000 + EVERETT_ROUND)) 'BEGIN {
    srand(seed)
    for (i = 0; i < 100; i++) print "incrby key:" int(rand() * 50) " " int(rand() * 1000)
}' | redis-cli > /dev/null
echo "round $EVERETT_ROUND: $(redis-cli debug digest)"
sleep 0.1
