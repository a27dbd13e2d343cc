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
