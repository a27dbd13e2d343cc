# One member of the cluster.
self=$(hostname)
exec env GOMAXPROCS=1 etcd --name "$self" --data-dir /data/etcd --logger=zap --log-level warn \
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$self:2379" \
    --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$self:2380" \
    --initial-cluster e1=http://e1:2380,e2=http://e2:2380,e3=http://e3:2380 --initial-cluster-state new
