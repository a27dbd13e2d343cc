#!/usr/bin/env bash
# Runs language runtimes under load and prints the table that docs/measured.md shows.
#
#     benches/runtimes.sh              three rounds of each
#     ROUNDS=5 benches/runtimes.sh
#
# In each world of benches/runtimes, a server and one client exchange lines over loopback. The first run boots the
# world and stores the boot; it is not timed. A round then runs 4 s of vtime of each world from its stored boot.
# Rounds alternate between the worlds, so that other work on the host disturbs all of them alike. The client starts
# with the run, and starting takes up to 0.8 s of the 4 s. CPU time covers the whole process, including reading the
# boot and all digests. The table has medians over the rounds. The script fails if the trails of a world differ, or if
# a run has a finding.
#
# EVERETT is the program.
set -euo pipefail
everett=$(realpath "${EVERETT:-target/release/everett}")
rounds=${ROUNDS:-3}
cd "$(dirname "$0")/runtimes"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

worlds='redis java node erlang'
declare -A names=(
    [redis]='Redis 7, `redis-benchmark` with one connection'
    [java]='JVM (OpenJDK 17), which compiles meanwhile'
    [node]='Node.js 18'
    [erlang]='BEAM (Erlang/OTP 25)'
)

fail() {
    echo "$1" >&2
    exit 1
}

# Prints a number or a plain text from the last line of a JSON file that has the key.
value() {
    grep -o "\"$1\":[^,}]*" "$2" | tail -n 1 | cut -d : -f 2- | tr -d '"'
}

# Prints why a run failed: its last finding, or else its last line of output.
why() {
    { grep '"kind":"finding"' "$place/$1.out" || cat "$place/$1.out" "$place/$1.err"; } | tail -n 1
}

# Runs a world. Writes its output to the file WORLD.out, its errors to WORLD.err, and its CPU time to WORLD.time.
run() {
    local status=0
    TIMEFORMAT='%U %S'
    { time "$everett" run "$1.toml" --seed 1 --for "$2" --json > "$place/$1.out" 2> "$place/$1.err" || status=$?; } \
        2> "$place/$1.time"
    [ $status = 0 ] || fail "$1: everett run ends with status $status: $(why "$1")"
}

# Prints the median of the numbers in a column of a file.
median() {
    sort -g -k "$1,$1" "$2" | awk -v column="$1" '{ all[NR] = $column }
        END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'
}

for world in $worlds; do
    run "$world" 1s
done
for ((round = 1; round <= rounds; round++)); do
    for world in $worlds; do
        run "$world" 4s
        trail=$(value trail "$place/$world.out")
        executed=$(value executed "$place/$world.out")
        cpu=$(awk '{ print $1 + $2 }' "$place/$world.time")
        echo "$executed $cpu $trail" >> "$place/$world.rounds"
        exchanges=$(grep -o '[0-9]* exchanges' "$place/$world.out") || fail "$world: its check printed no number of exchanges"
        echo "round $round of $rounds: $world: $exchanges, $executed instructions, $cpu s of CPU, trail $trail" >&2
        [ "$(cut -d ' ' -f 3 "$place/$world.rounds" | sort -u | wc -l)" = 1 ] ||
            fail "$world: trails of one timeline differ: $(cut -d ' ' -f 3 "$place/$world.rounds" | sort -u | paste -s -d ' ')"
    done
done

echo "| Debian 12's | instructions | instructions per second of CPU | speed relative to Redis |"
echo '|---|---|---|---|'
for world in $worlds; do
    awk -v name="${names[$world]}" -v executed="$(median 1 "$place/$world.rounds")" -v cpu="$(median 2 "$place/$world.rounds")" \
        -v redis_executed="$(median 1 "$place/redis.rounds")" -v redis_cpu="$(median 2 "$place/redis.rounds")" 'BEGIN {
        speed = executed / cpu
        relative = speed / (redis_executed / redis_cpu)
        printf "| %s | %.1f billion | %.2f billion | %s |\n", name, executed / 1e9, speed / 1e9,
            relative == 1 ? "1" : sprintf("%.2f", relative)
    }'
done
