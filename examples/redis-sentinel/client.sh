# Write to whichever node the Sentinels call the master, and say when that changes.
known=
while :; do
    for node in n1 n2 n3; do
        master=$(timeout 1 redis-cli -h $node -p 26379 sentinel get-master-addr-by-name everett 2> /dev/null | head -n 1)
        [ -n "$master" ] && break
    done
    if [ -n "$master" ] && [ "$master" != "$known" ]; then
        echo "the master is $master"
        known=$master
    fi
    [ -n "$master" ] && timeout 1 redis-cli -h "$master" incr writes > /dev/null 2>&1
    sleep 0.1
done
