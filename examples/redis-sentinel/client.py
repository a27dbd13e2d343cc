"""Add numbers to a set, one after the other, and write down what was asked and what was answered.

    client.py sentinel ADDRESS...    to whichever Redis the Sentinels at these addresses call the master
    client.py redis ADDRESS          to the one there

It does what Redis' guide for clients of Sentinel says: ask the Sentinels until one answers, connect to the master that it names, see
whether that one agrees, and begin anew when the connection breaks.
"""

import os
import sys
import time

from resp import Connection, Refused, ask_once, tell

# How long a client waits for a Sentinel, and for an answer of Redis.
SENTINEL_S = 0.2
ANSWER_S = 0.3
# From one write to the next, and from one attempt to find the master to the next.
PACE_S = 0.04
RETRY_S = 0.05
# A round of the driver has so many numbers, for its processes and for what it adds.
FIRST = int(os.environ.get("EVERETT_ROUND", "0")) * 1000000
# Answers of a server that has not done what it was asked for.
NEVER = ("READONLY", "LOADING", "MASTERDOWN", "MISCONF")


def master(sentinels):
    """Where the first Sentinel that answers says that the master is. Those that do not are the last to be asked next time."""
    for sentinel in list(sentinels):
        try:
            address = ask_once(sentinel, 26379, SENTINEL_S, "SENTINEL GET-MASTER-ADDR-BY-NAME everett")
            if address is not None:
                return address[0]
        except (OSError, Refused):
            pass
        sentinels.append(sentinels.pop(0))
    return None


def connect(address):
    """A connection to a Redis that says that it is a master, or none."""
    try:
        connection = Connection(address, 6379, ANSWER_S)
    except OSError:
        return None
    try:
        if connection.ask("ROLE")[0] == "master":
            return connection
    except (OSError, Refused):
        pass
    connection.close()
    return None


def main(how, addresses):
    known = connection = None
    process = value = FIRST
    while True:
        while connection is None:
            address = master(addresses) if how == "sentinel" else addresses[0]
            connection = connect(address) if address else None
            if connection is None:
                time.sleep(RETRY_S)
            elif address != known:
                print("the master is", address, flush=True)
                known = address
        value += 1
        tell(process, "invoke", "add", value)
        try:
            connection.ask("SADD numbers", value)
            end = "ok"
        except OSError:
            # It may have happened, or may yet.
            end = "info"
        except Refused as refused:
            end = "fail" if str(refused).startswith(NEVER) else "info"
        tell(process, end, "add", value)
        if end != "ok":
            # Whoever does not know takes a new number.
            process += 1
            connection.close()
            connection = None
        time.sleep(PACE_S)


main(sys.argv[1], sys.argv[2:])
