"""A replica of the ledger. `credit ID ACCOUNT AMOUNT` adds to an account, `balances` lists all accounts, `ping` answers.

A credit is in the file before it is acknowledged. With DEDUPLICATE=yes, a credit whose ID the ledger has is acknowledged and not
applied again.
"""

import os
import socket
import threading

from wire import PORT

DEDUPLICATE = os.environ.get("DEDUPLICATE") == "yes"
ledger = os.open("/ledger/credits", os.O_RDWR | os.O_CREAT, 0o644)
lock = threading.Lock()
balances, known = {}, set()


def apply(line):
    number, account, amount = line.split()
    balances[account] = balances.get(account, 0) + int(amount)
    known.add(number)


def load():
    """Reads the file. A last line without an end was never acknowledged, and is cut off."""
    content = b""
    while more := os.read(ledger, 65536):
        content += more
    whole = content.rfind(b"\n") + 1
    os.ftruncate(ledger, whole)
    os.lseek(ledger, whole, os.SEEK_SET)
    for line in content[:whole].decode().splitlines():
        apply(line)


def answer(line):
    command, _, rest = line.partition(" ")
    with lock:
        if command == "balances":
            return [f"{account} {balance}" for account, balance in balances.items()]
        if command == "credit" and not (DEDUPLICATE and rest.split()[0] in known):
            os.write(ledger, rest.encode() + b"\n")
            os.fsync(ledger)
            apply(rest)
    return ["ok"]


def serve(connection):
    """Answers the requests of a client, which come line by line."""
    try:
        with connection, connection.makefile() as lines:
            for line in lines:
                connection.sendall("\n".join([*answer(line.strip()), ".\n"]).encode())
    except OSError:
        pass


load()
listener = socket.create_server(("", PORT), backlog=64)
print(f"the ledger has {len(balances)} accounts", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
