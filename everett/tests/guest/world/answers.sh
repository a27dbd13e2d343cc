# Questions with known answers, for programs that nobody here wrote.
set -eu
python3 - <<'PYTHON'
import hashlib, json, math, zlib
print("python", 3**200 % 1000007, math.factorial(30), round(math.gamma(0.5) ** 2, 12), math.hypot(3, 4))
print("python", hashlib.sha256(b"everett").hexdigest()[:16], zlib.crc32(b"everett"), json.dumps({"a": [1.5, None]}))
print("python", sum(1 / n for n in range(1, 1001)), f"{math.exp(1):.15f}", f"{math.sin(1e5):.15f}")
PYTHON
sqlite3 :memory: "
    create table t (n integer, s text);
    with recursive c(n) as (select 1 union all select n + 1 from c where n < 1000)
        insert into t select n, hex(n * n) from c;
    create index i on t (s);
    select 'sqlite', count(*), sum(n), max(s), round(avg(n * 1.5), 6) from t;
    pragma integrity_check;"
printf everett > /tmp/plain
openssl dgst -sha256 /tmp/plain
openssl enc -aes-256-cbc -pbkdf2 -pass pass:secret -in /tmp/plain -out /tmp/cipher
openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:secret -in /tmp/cipher
echo
openssl genpkey -algorithm ed25519 -out /tmp/key 2> /dev/null
openssl pkeyutl -sign -inkey /tmp/key -rawin -in /tmp/plain -out /tmp/signature
openssl pkey -in /tmp/key -pubout -out /tmp/public
openssl pkeyutl -verify -pubin -inkey /tmp/public -rawin -in /tmp/plain -sigfile /tmp/signature
