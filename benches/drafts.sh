#!/usr/bin/env bash
# Boots the draft of `everett init` for each server that Everett knows from a Debian package, and prints the table of
# docs/drafts.md: vtime of *ready*, host seconds, result. Packages can be named: benches/drafts.sh nginx mosquitto
set -euo pipefail
everett=$(realpath "${EVERETT:-target/release/everett}")
[ $# -gt 0 ] || set -- etcd-server haproxy mariadb-server memcached mosquitto nats-server nginx postgresql \
    rabbitmq-server redis-server zookeeper beanstalkd
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failed=0
echo '| package | machines | vtime of ready | host | result |'
echo '|---|---|---|---|---|'
for package; do
    for nodes in 1 3; do
        mkdir "$place/$package-$nodes"
        cd "$place/$package-$nodes"
        start=$SECONDS
        if "$everett" init "$package" --nodes $nodes > out 2>&1 && "$everett" run --for 3s >> out 2>&1; then
            result='ready, answers'
        else
            result=$(grep -m 1 FOUND out || tail -n 1 out)
            failed=1
        fi
        ready=$(grep 'services are ready' out | tail -n 1 | awk '{ printf "%.1f s", $1 }')
        echo "| \`$package\` | $nodes | $ready | $((SECONDS - start)) s | $result |"
    done
done
exit $failed
