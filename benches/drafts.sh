#!/usr/bin/env bash
# Boots drafts, i.e. the world files that `everett init` writes for packages, and prints the table of docs/drafts.md.
#
#     benches/drafts.sh                     all packages, on one machine and on three
#     benches/drafts.sh nginx mosquitto/3   one package on one machine and on three, another on three
#
# For each draft the script runs `everett init` and builds the image. Then it boots the world from power-on to *ready*
# (all services are up). The checks run 2 s of vtime later, and must pass. The table has the vtime of *ready*, and the
# host's CPU time for the boot, these 2 s and the checks. Then the script runs 3 s of vtime and the checks, and explores
# 5 branches. If the exploration has a finding, the row names it, and the script does not fail.
#
# EVERETT is the program. BRANCHES is the number of branches. KEEP is a folder that keeps the worlds, the outputs and
# the run directories.
set -euo pipefail
everett=$(realpath "${EVERETT:-target/release/everett}")
branches=${BRANCHES:-5}
[ $# -gt 0 ] || set -- beanstalkd etcd-server haproxy mariadb-server memcached mosquitto nats-server nginx postgresql \
    prometheus rabbitmq-server redis-server zookeeper
if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    place=$(realpath "$KEEP")
else
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
fi
failed=0

# Prints a number or a plain text from the last line of a JSON file that has the key.
value() {
    grep -o "\"$1\":[^,}]*" "$2" | tail -n 1 | cut -d : -f 2- | tr -d '"'
}

# Runs everett. Writes its output to the file $1.out, its errors to $1.err, and its CPU time in seconds to $1.cpu.
timed() {
    local name=$1 status=0
    shift
    TIMEFORMAT='%U %S'
    { time "$everett" "$@" > "$name.out" 2> "$name.err" || status=$?; } 2> "$name.time"
    awk '{ printf "%.1f s\n", $1 + $2 }' "$name.time" > "$name.cpu"
    return $status
}

# Prints a row of the table.
row() {
    echo "| \`$package\` | $version | $nodes | $1 | $2 | $3 | $4 |"
}

# Prints a row with the last line of a failed step's output.
fail() {
    row "${ready:-}" "${cpu:-}" '' "$1: $(cat "$2.out" "$2.err" | tail -n 1 | cut -c 1-200 | tr '|' '/')"
    failed=1
}

draft() {
    local version='' ready='' cpu='' found
    cd "$(mktemp -d "$place/$package-$nodes-XXXXXX")"
    timed init init "$package" --nodes "$nodes" || { fail 'no draft' init; return; }
    timed image image build world.toml || { fail 'no image' image; return; }
    version=$(grep -A 1 "^name = \"$package\"" world.lock | grep -m 1 '^version' | cut -d '"' -f 2 || true)
    timed boot run --json --cold --for 1ms || { fail 'not ready, or no answer' boot; return; }
    ready=$(value ready_ns boot.out | awk '{ printf "%.1f s", $1 / 1e9 }')
    cpu=$(cat boot.cpu)
    timed run run --json --for 3s || { fail 'no answer after 3 s' run; return; }
    timed explore explore --json --branches $branches || [ $? = 1 ] || { fail 'no exploration' explore; return; }
    found=$(grep '"kind":"found"' explore.out | grep -o '"property":"[^"]*"' | cut -d '"' -f 4 | sort | uniq -c |
        awk '{ $1 = ""; printf "%s%s", separator, substr($0, 2); separator = ", " }' || true)
    row "$ready" "$cpu" "$(value branches explore.out), $(value checked explore.out), $(value faults explore.out)" "${found:-nothing}"
}

echo '| package | version | machines | vtime of ready | CPU to ready | branches, checked, faults | found |'
echo '|---|---|---|---|---|---|---|'
for word; do
    package=${word%/*}
    case $word in
        */*) counts=${word#*/} ;;
        *) counts='1 3' ;;
    esac
    for nodes in $counts; do
        draft
    done
done
exit $failed
