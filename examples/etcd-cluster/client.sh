# Put one number after the other, and remember the last one that was acknowledged.
export ETCDCTL_API=3
last=0
while :; do
    next=$((last + 1))
    for node in e1 e2 e3; do
        if etcdctl --endpoints "http://$node:2379" --command-timeout 1s put number $next > /dev/null 2>&1; then
            last=$next
            echo "$last" > /tmp/acknowledged
            [ $((last % 20)) = 0 ] && echo "acknowledged $last, by $node"
            break
        fi
    done
    sleep 0.05
done
