# The server is healthy and its revision counts our puts.
set -eu
etcdctl endpoint health 2>&1
etcdctl endpoint status --write-out=simple
etcdctl get --prefix k --keys-only | grep -c '^k'
