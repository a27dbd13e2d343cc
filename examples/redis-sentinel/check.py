"""Wait until the servers agree, then read the whole set once, into the history.

    check.py sentinel ADDRESS...    Sentinels and Redis at these addresses
    check.py redis ADDRESS          one Redis
    check.py settled ADDRESS...     wait, and read nothing

Whether what it reads is right is not judged here: Everett compares it with what was acknowledged.
"""

import sys
import time

from resp import Refused, ask_once, tell

ANSWER_S = 1
# A Redis that comes back as a master is made a replica when Sentinel has seen it as one for eight seconds, and it looks every ten.
TRIES = 60
TRY_S = 1


def master_of(addresses):
    """The master that all Sentinels agree on, with two replicas that have all that it has."""
    views = [ask_once(address, 26379, ANSWER_S, "INFO sentinel").split("master0:")[-1] for address in addresses]
    roles = {address: ask_once(address, 6379, ANSWER_S, "ROLE") for address in addresses}
    master = views[0].split("address=")[-1].split(":")[0]
    whole = f"name=everett,status=ok,address={master}:6379,slaves=2,sentinels=3"
    role = roles.pop(master, ["nobody"])
    replicas = [replica[:4] == ["slave", master, 6379, "connected"] and replica[4] >= role[1] for replica in roles.values()]
    if [view.strip() for view in views] != [whole] * 3 or role[0] != "master" or replicas != [True, True]:
        raise OSError(f"Sentinels say {views}, {master} is {role}, others are {roles}")
    return master


def read(master, attempt):
    # Each attempt is a process of its own: of one that gets no answer nobody knows.
    process = f'"check {attempt}"'
    tell(process, "invoke", "read", "null")
    numbers = ask_once(master, 6379, ANSWER_S, "SMEMBERS numbers")
    tell(process, "ok", "read", "[" + ",".join(numbers) + "]")
    print(f"{master} is the master and has {len(numbers)} numbers")


def main(how, addresses):
    for attempt in range(TRIES):
        if attempt:
            time.sleep(TRY_S)
        try:
            if how == "redis":
                return read(addresses[0], attempt)
            master = master_of(addresses)
            return read(master, attempt) if how == "sentinel" else None
        except (OSError, Refused) as error:
            why = error
    sys.exit(f"not in {TRIES} attempts: {why}")


main(sys.argv[1], sys.argv[2:])
