#!/usr/bin/env python3
"""Three clients of a Redis that write their history, in Python: client.py ADDRESS"""

import json
import os
import random
import socket
import sys
import threading
import time

# Outside of Everett the history goes to standard output.
HISTORY = int(os.environ.get("EVERETT_HISTORY", "1"))
SEED = int(os.environ.get("EVERETT_SEED", "1"))
ROUND = int(os.environ.get("EVERETT_ROUND", "0"))
CLIENTS = 3
KEYS = ["x", "y"]
SWAP = 'if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("SET", KEYS[1], ARGV[2]) return 1 end return 0'


def tell(process, kind, f, key, value):
    """One line, in one write. It returns when the host has the line."""
    event = {"process": process, "type": kind, "f": f, "key": key, "value": value}
    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    while line:
        line = line[os.write(HISTORY, line) :]


class Redis:
    """A connection. Whatever goes wrong with it is an OSError."""

    def __init__(self, address):
        self.socket = socket.create_connection((address, 6379), timeout=0.2)
        self.socket.settimeout(1)
        self.replies = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in map(str, words):
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word.encode()))
        self.socket.sendall(b"".join(parts))
        reply = self.line()
        if reply[:1] == b"$":
            return None if reply == b"$-1" else self.line().decode()
        if reply[:1] == b"-":
            raise OSError(reply.decode())
        return reply[1:].decode()

    def line(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection ended")
        return line[:-2]


def perform(redis, f, key, value):
    """The type and the value of the operation's end."""
    if f == "read":
        seen = redis.ask("GET", key)
        return "ok", None if seen is None else int(seen)
    if f == "write":
        redis.ask("SET", key, value)
        return "ok", value
    swapped = redis.ask("EVAL", SWAP, 1, key, *value)
    return "ok" if swapped == "1" else "fail", value


def client(number, address):
    draw = random.Random(f"{SEED} {ROUND} {number}")
    # No other client of this node has these numbers, and none of them comes back in a later round.
    process = ROUND * 100000 + number
    next_value = process * 1000000
    seen = None
    redis = None
    while True:
        try:
            # Who has no connection has not asked for anything.
            redis = redis or Redis(address)
        except OSError:
            time.sleep(0.02)
            continue
        f, key, value = draw.choice(["read", "write", "cas"]), draw.choice(KEYS), None
        if f == "cas" and seen is None:
            continue
        if f != "read":
            value = next_value if f == "write" else [seen, next_value]
            next_value += 1
        tell(process, "invoke", f, key, value)
        try:
            kind, value = perform(redis, f, key, value)
            tell(process, kind, f, key, value)
            if f == "read":
                seen = value
        except OSError:
            # It may have happened, or may yet. Whoever does not know takes a new number.
            tell(process, "info", f, key, None)
            process += CLIENTS
            redis = None
        time.sleep(draw.uniform(0, 0.01))


if __name__ == "__main__":
    for number in range(CLIENTS):
        threading.Thread(target=client, args=(number, sys.argv[1])).start()
