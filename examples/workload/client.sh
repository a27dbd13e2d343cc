#!/bin/sh
# A client of a Redis that writes its history, in POSIX shell: client.sh ADDRESS
db=$1
# Outside of Everett the history goes to standard output.
history=${EVERETT_HISTORY:-1}
round=${EVERETT_ROUND:-0}
# No other client of this node has these numbers, and none of them comes back in a later round.
process=$((1000 + round * 100000))
value=$((process * 1000000))
random=$((${EVERETT_SEED:-1} % 65536 * 7919 + round))

# draw N: a number below N in $drawn.
draw() {
    random=$(((random * 1103515245 + 12345) % 2147483648))
    drawn=$((random / 65536 % $1))
}

# tell TYPE VALUE: one line, in one write, about the operation $f on $key.
tell() {
    echo "{\"process\":$process,\"type\":\"$1\",\"f\":\"$f\",\"key\":\"$key\",\"value\":$2}" >&"$history"
}

# ask COMMAND...: what Redis says, in $answer. False if nobody knows what became of it.
ask() {
    answer=$(timeout 1 redis-cli -e -h "$db" "$@" 2> /dev/null)
}

swap='if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("SET", KEYS[1], ARGV[2]) return 1 end return 0'
while :; do
    draw 2
    if [ "$drawn" = 0 ]; then key=x; else key=y; fi
    draw 3
    case $drawn in
    0)
        f=read
        tell invoke null
        if ask GET "$key"; then
            seen=${answer:-null}
            tell ok "$seen"
            continue
        fi
        ;;
    1)
        f=write value=$((value + 1))
        tell invoke "$value"
        if ask SET "$key" "$value"; then
            tell ok "$value"
            continue
        fi
        ;;
    2)
        # From what was read last, wherever that was: some swaps find it, and some do not.
        f=cas value=$((value + 1))
        [ "${seen:-null}" = null ] && continue
        tell invoke "[$seen,$value]"
        if ask EVAL "$swap" 1 "$key" "$seen" "$value"; then
            if [ "$answer" = 1 ]; then tell ok "[$seen,$value]"; else tell fail "[$seen,$value]"; fi
            continue
        fi
        ;;
    esac
    # It may have happened, or may yet. Whoever does not know takes a new number.
    tell info null
    process=$((process + 1))
    sleep 0.02
done
