#!/bin/sh
# Before all others, alone and without faults.
set -eu
redis-cli -e -h db set counter 0
