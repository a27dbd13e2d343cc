# Count up in Redis, one acknowledged number after the other; the last one is kept in a file that survives.
last=0
while :; do
    answer=$(timeout 0.5 redis-cli -h db incr numbers 2> /dev/null)
    case $answer in
        '' | *[!0-9]*) sleep 0.02 ;;
        *)
            if [ "$answer" -le "$last" ]; then
                echo "LOST: $last was acknowledged, then came $answer"
                exit 1
            fi
            last=$answer
            echo "$last" > /tmp/acknowledged
            ;;
    esac
done
