# At the end: Redis has at least what it acknowledged.
# A run can be over before anything was acknowledged.
acknowledged=$(cat /tmp/acknowledged 2> /dev/null || echo 0)
stored=$(redis-cli -h db get numbers)
echo "acknowledged $acknowledged, stored $stored"
[ "${stored:-0}" -ge "$acknowledged" ]
