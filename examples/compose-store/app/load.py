"""Credits 100 to one account after the other, at all replicas. Accounts that two replicas have acknowledged are written to
/credited/accounts.
"""

import os
import socket
import time

from wire import PORT, Connection

PATIENCE_S = 0.3
ATTEMPTS = 3

credited = os.open("/credited/accounts", os.O_RDWR | os.O_CREAT | os.O_APPEND)
lines = os.read(credited, 1 << 20).split()
# An account that was tried before the machine lost power is not tried again.
account = int(lines[-1]) + 1000 if lines else 1
replicas = sorted({found[4][0] for found in socket.getaddrinfo("store", PORT, socket.AF_INET, socket.SOCK_STREAM)})


connections = {}


def credit(replica, account):
    """Returns true if the replica has acknowledged the credit. One that does not answer in time is asked again, on a new
    connection.
    """
    for _ in range(ATTEMPTS):
        try:
            if replica not in connections:
                connections[replica] = Connection(replica, PATIENCE_S)
            return connections[replica].ask(f"credit {account} account-{account} 100") == ["ok"]
        except OSError:
            if replica in connections:
                connections.pop(replica).close()
    return False


while True:
    if sum([credit(replica, account) for replica in replicas]) >= 2:
        os.write(credited, b"%d\n" % account)
        os.fsync(credited)
        if account % 20 == 0:
            print("credited", account, flush=True)
    account += 1
    time.sleep(0.05)
