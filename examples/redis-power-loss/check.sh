# At the end: Redis has at least what it acknowledged.
acknowledged=$(cat /tmp/acknowledged)
stored=$(redis-cli -h db get numbers)
echo "acknowledged $acknowledged, stored $stored"
[ "$stored" -ge "$acknowledged" ]
