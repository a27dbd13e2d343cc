# At the end: the database is whole, and every acknowledged number is in it.
import socket
import sqlite3
import sys

keeper = socket.create_connection(("keeper", 7000))
keeper.sendall(f"{socket.gethostname()}\n".encode())
acknowledged = int(keeper.makefile("r").readline())
database = sqlite3.connect("/data/numbers.db")
verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
last, count = database.execute("SELECT coalesce(max(n), 0), count(*) FROM numbers").fetchone()
print("integrity", verdict, "acknowledged", acknowledged, "last", last, "count", count)
if verdict != "ok" or last < acknowledged or last != count:
    sys.exit("LOST")
