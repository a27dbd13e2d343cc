"""Add numbers to a set on the master, and read it after each fifth. One number in 256 goes to a replica: that is the defect.

    careless.py MASTER REPLICA...

`careless.toml` lets replicas take writes, as `replica-read-only no` does. What a replica takes, the master does not have.
"""

import os
import sys
import time

from resp import Connection, Refused, tell

ANSWER_S = 0.3
PACE_S = 0.04
# A round of the driver has so many numbers, for its processes and for what it adds.
FIRST = int(os.environ.get("EVERETT_ROUND", "0")) * 1000000

connections = {}


def ask(address, *words):
    """An answer of the server at this address; after an error the connection is opened again."""
    try:
        if address not in connections:
            connections[address] = Connection(address, 6379, ANSWER_S)
        return connections[address].ask(*words)
    except OSError:
        if address in connections:
            connections.pop(address).close()
        raise


def operate(process, f, value, address, *words):
    """One operation with its history. Returns the process of the next one: of one without an answer nobody knows."""
    tell(process, "invoke", f, value)
    try:
        answer = ask(address(), *words)
        tell(process, "ok", f, value if f == "add" else "[" + ",".join(answer) + "]")
        return process
    except (OSError, Refused):
        tell(process, "info", f, value)
        return process + 1


def main(master, replicas):
    process = value = FIRST

    def careless():
        draw = os.urandom(2)
        return replicas[draw[1] % len(replicas)] if draw[0] == 0 else master

    while True:
        value += 1
        process = operate(process, "add", value, careless, "SADD numbers", value)
        if value % 5 == 0:
            process = operate(process, "read", "null", lambda: master, "SMEMBERS numbers")
        time.sleep(PACE_S)


main(sys.argv[1], sys.argv[2:])
