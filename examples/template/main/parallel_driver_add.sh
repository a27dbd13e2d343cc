#!/bin/sh
# Count up, and write down what was acknowledged. That nobody answers is to be expected.
for _ in 1 2 3 4 5; do
    if counter=$(timeout 1 redis-cli -e -h db incr counter 2> /dev/null); then
        echo "$counter" >> /tmp/acknowledged
    fi
    sleep 0.01
done
