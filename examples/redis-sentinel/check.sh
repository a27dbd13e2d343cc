# When all is calm, the Sentinels agree on one master, and the others are its replicas.
for try in $(seq 60); do
    masters=$(for node in n1 n2 n3; do
        redis-cli -h $node -p 26379 sentinel get-master-addr-by-name everett | head -n 1
    done | sort -u)
    roles=$(for node in n1 n2 n3; do redis-cli -h $node role | head -n 1; done | sort | tr '\n' ' ')
    if [ "$(echo "$masters" | wc -l)" = 1 ] && [ "$roles" = "master slave slave " ]; then
        # Each fail-over is an epoch.
        epoch=$(redis-cli -h n1 -p 26379 sentinel master everett | grep -A 1 '^config-epoch$' | tail -n 1)
        echo "one master, $masters, after $epoch fail-overs; calm after $try s; writes $(redis-cli -h "$masters" get writes)"
        exit 0
    fi
    sleep 1
done
echo "masters: $masters; roles: $roles"
exit 1
