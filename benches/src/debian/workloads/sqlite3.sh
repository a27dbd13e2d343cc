# SQLite's bytecode interpreter over B-trees: branches, calls, memory.

sqlite3() { command sqlite3 -bail :memory: < "$here/sqlite3.sql"; }
sqlite3_result() { cksum < /tmp/sqlite3.out; }
part sqlite3
