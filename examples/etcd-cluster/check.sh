# When all is calm, every member has the last number that was acknowledged, or a later one.
export ETCDCTL_API=3
# A run can be over before anything was.
acknowledged=$(cat /tmp/acknowledged 2> /dev/null || echo 0)
for node in e1 e2 e3; do
    stored=$(etcdctl --endpoints "http://$node:2379" --command-timeout 30s get number --print-value-only) || exit 1
    echo "$node has $stored; acknowledged $acknowledged"
    [ "${stored:-0}" -ge "$acknowledged" ] || exit 1
done
