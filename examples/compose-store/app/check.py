"""Asks all replicas for their balances. No account may have more than one credit, and two replicas must have each account that
was acknowledged.
"""

import socket
import sys
import time

from wire import PORT, Connection


def balances(replica):
    for _ in range(50):
        try:
            pairs = [line.split() for line in Connection(replica, 3).ask("balances")]
            return {account: int(balance) for account, balance in pairs}
        except OSError:
            time.sleep(0.2)
    sys.exit(f"{replica} does not answer")


credited = [f"account-{int(line)}" for line in open("/credited/accounts")]
found = socket.getaddrinfo("store", PORT, socket.AF_INET, socket.SOCK_STREAM)
replicas = {address: balances(address) for address in sorted({one[4][0] for one in found})}
wrong = 0
for address, of_replica in replicas.items():
    for account, balance in of_replica.items():
        if balance != 100:
            print(f"{address}: {account} has {balance} instead of 100")
            wrong += 1
for account in credited:
    count = sum(account in of_replica for of_replica in replicas.values())
    if count < 2:
        print(f"{account} was acknowledged, and {count} of {len(replicas)} replicas have it")
        wrong += 1
print(f"{len(credited)} acknowledged credits, {wrong} wrong")
sys.exit(wrong > 0)
