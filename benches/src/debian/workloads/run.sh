# PID 1 in the root filesystem. It runs the workloads one after the other, each between two marks on the console (read
# by marks.rs), and prints a result that is the same on every machine. The input of a workload is prepared before its
# first mark. The end of this script ends the machine.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
cd /tmp

workload() {
    name=$1
    echo "everett-bench: begin $name"
    if "$name" > "/tmp/$name.out" 2>&1; then
        echo "everett-bench: end $name"
        echo "everett-bench: result $("${name}_result")"
    else
        tail -n 3 "/tmp/$name.out"
        echo "everett-bench: failed $name"
    fi
}

# Integer code that stays in registers and the first-level cache, in one loop.
head -c 48M /dev/zero > /tmp/zeros
sha256() { sha256sum /tmp/zeros /tmp/zeros /tmp/zeros; }
sha256_result() { cksum < /tmp/sha256.out; }
workload sha256
rm /tmp/zeros

# SQLite's bytecode interpreter over B-trees: branches, calls, memory.
cat > /tmp/queries.sql << 'END'
CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, v TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    INSERT INTO t SELECT i, (i * 7919) % 10007, printf('value-%08x', i * 2654435761 % 4294967296) FROM n;
CREATE INDEX tk ON t(k);
SELECT count(*), sum(k), min(v), max(v) FROM t;
SELECT count(*) FROM t a JOIN t b ON a.k = b.k WHERE a.id < b.id;
SELECT k % 100 AS g, count(*), avg(id), max(length(v)) FROM t GROUP BY g ORDER BY 3 DESC LIMIT 5;
SELECT v FROM t ORDER BY v LIMIT 5 OFFSET 30000;
SELECT count(*) FROM t WHERE v LIKE '%ab%';
UPDATE t SET k = k + 1 WHERE id % 3 = 0;
DELETE FROM t WHERE id % 7 = 0;
SELECT count(*), sum(k) FROM t;
END
sqlite3() { command sqlite3 -bail :memory: < /tmp/queries.sql; }
sqlite3_result() { cksum < /tmp/sqlite3.out; }
workload sqlite3

# A server and its clients: system calls, the network stack, switches between processes.
redis-server --save '' --dir /tmp --daemonize yes > /tmp/redis-server.out
until redis-cli ping > /dev/null 2>&1; do sleep 0.1; done
redis() { redis-benchmark -q -n 12000 -c 10 -P 4 -t set,get,lpush,zadd; }
# The clients print times, so the result is the number of pushed items instead.
redis_result() { redis-cli llen mylist; }
workload redis

echo "everett-bench: done"
