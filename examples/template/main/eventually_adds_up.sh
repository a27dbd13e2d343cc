#!/bin/sh
# When faults are over and drivers are gone, Redis comes back, and has what it acknowledged.
until counter=$(timeout 1 redis-cli -e -h db get counter 2> /dev/null); do sleep 0.1; done
acknowledged=$(sort -n /tmp/acknowledged 2> /dev/null | tail -n 1)
echo "${acknowledged:-0} acknowledged, the counter is ${counter:-gone}"
test "${counter:--1}" -ge "${acknowledged:-0}"
