# Insert one number after the other, and tell each to the keeper once sqlite3 has acknowledged it.
import os
import socket
import sqlite3
import sys

# Whatever a loss of power has done is seen here first: a database that cannot be opened is a finding.
database = sqlite3.connect("/data/numbers.db", isolation_level=None)
database.execute("PRAGMA journal_mode = " + os.environ["JOURNAL"])
database.execute("PRAGMA synchronous = " + os.environ["SYNCHRONOUS"])
database.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY, filling BLOB)")
verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
if verdict != "ok":
    sys.exit("integrity_check: " + verdict)

keeper = socket.create_connection(("keeper", 7000))
keeper.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
lines = keeper.makefile("r")
keeper.sendall(f"{socket.gethostname()}\n".encode())
acknowledged = int(lines.readline())
last, count = database.execute("SELECT coalesce(max(n), 0), count(*) FROM numbers").fetchone()
if last < acknowledged:
    sys.exit(f"LOST: {acknowledged} was acknowledged, the database ends with {last}")
if last != count:
    sys.exit(f"LOST: the last number is {last}, and there are {count}")
print("begins at", last, "after", acknowledged, flush=True)

while True:
    last += 1
    database.execute("INSERT INTO numbers VALUES (?, ?)", (last, bytes([last % 251]) * (last * 97 % 6000)))
    keeper.sendall(f"{last}\n".encode())
    if lines.readline() != f"{last}\n":
        sys.exit("the keeper is gone")
