# One round: put keys, read them back, compare.
set -eu
i=0
while [ $i -lt 3 ]; do
    key="k$(((EVERETT_SEED + EVERETT_ROUND * 3 + i) % 50))"
    value="seed-$EVERETT_SEED-round-$EVERETT_ROUND-$i"
    etcdctl put "$key" "$value" > /dev/null
    got=$(etcdctl get --print-value-only "$key")
    if [ "$got" != "$value" ]; then
        echo "$key: put $value, got $got"
        exit 1
    fi
    i=$((i + 1))
done
echo "round $EVERETT_ROUND: 3 puts and gets agree"
sleep 0.2
