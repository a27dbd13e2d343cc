#!/bin/sh
# What was acknowledged before somebody asks is there.
acknowledged=$(sort -n /tmp/acknowledged 2> /dev/null | tail -n 1)
counter=$(timeout 1 redis-cli -e -h db get counter 2> /dev/null) || exit 0
echo "${acknowledged:-0} acknowledged, the counter is ${counter:-gone}"
test "${counter:--1}" -ge "${acknowledged:-0}"
