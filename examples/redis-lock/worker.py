"""Take a lock, work, give it back, again and again: worker.py ADDRESS

The lock is the one of Redis' documentation: SET with NX and PX, and a script that deletes it only if it is still the own one. The
worker is a careful one: it renews the lock in time, stops when the lock would be too old by its own clock, counted from before it
asked, and never uses one of which it does not know whether it has it.
"""

import os
import sys
import time
from _socket import SOL_TCP, TCP_NODELAY, socket

# Outside of Everett the history goes to standard output.
HISTORY = int(os.environ.get("EVERETT_HISTORY", "1"))
# A round of the driver has so many numbers for its processes.
FIRST = int(os.environ.get("EVERETT_ROUND", "0")) * 1000000
# How long the server keeps the lock, how much earlier its holder stops, and how often it renews it.
LIVES_S = 2.5
MARGIN_S = 0.2
RENEWED_S = 0.8
ANSWER_S = 0.2
RETRY_S = 0.05
# Work takes up to this.
WORK_S = 4
MINE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call'
RENEW = MINE + f'("pexpire", KEYS[1], {LIVES_S * 1000:.0f}) else return 0 end'
DELETE = MINE + '("del", KEYS[1]) else return 0 end'


def tell(process, kind, f):
    """One line of the history, in one write. It returns when the host has the line."""
    line = f'{{"process":{process},"type":"{kind}","f":"{f}","value":null}}\n'.encode()
    while line:
        line = line[os.write(HISTORY, line) :]


class Server:
    """Redis. Whatever goes wrong with it is an OSError, and closes the connection."""

    def __init__(self, address):
        self.address = address
        self.socket = None
        self.answered = None

    def ask(self, *words):
        """What it answers: a line."""
        try:
            if self.socket is None:
                self.socket = socket()
                self.socket.settimeout(ANSWER_S)
                self.socket.setsockopt(SOL_TCP, TCP_NODELAY, 1)
                self.socket.connect((self.address, 6379))
            parts = [f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words]
            self.socket.sendall("".join(parts).encode())
            answer = b""
            while not answer.endswith(b"\r\n"):
                more = self.socket.recv(4096)
                if not more:
                    raise OSError("the connection ended")
                answer += more
            if answer.startswith(b"-"):
                raise OSError(answer.decode())
        except OSError:
            if self.socket is not None:
                self.socket.close()
            self.socket = None
            self.seen("is away")
            raise
        self.seen("answers")
        return answer.decode().strip()

    def seen(self, how):
        if how != self.answered:
            print("the server", how, flush=True)
        self.answered = how


def acquire(server, process, token):
    """When the lock is too old, or None: it is another's, or nobody knows."""
    tell(process, "invoke", "acquire")
    asked = time.monotonic()
    try:
        answer = server.ask("SET", "lock", token, "NX", "PX", f"{LIVES_S * 1000:.0f}")
    except OSError:
        tell(process, "info", "acquire")
        return None
    too_old = asked + LIVES_S - MARGIN_S
    # An answer that took its time is as good as none: nobody holds the lock, until it expires.
    mine = answer == "+OK" and time.monotonic() < too_old
    tell(process, "ok" if mine else "fail", "acquire")
    return too_old if mine else None


def work(server, token, too_old):
    """Work with the lock, for a while or until it cannot be held any longer. How it ended."""
    # Of the kernel's random numbers, which differ from timeline to timeline.
    done = time.monotonic() + WORK_S * (1 + os.getrandom(1)[0]) / 256
    renewal = too_old + MARGIN_S - LIVES_S + RENEWED_S
    while True:
        now = time.monotonic()
        if now >= min(done, too_old):
            return "given back" if done <= too_old else "too old"
        if now >= renewal:
            try:
                if server.ask("EVAL", RENEW, "1", "lock", token) != ":1":
                    return "lost"
                too_old = now + LIVES_S - MARGIN_S
                renewal = now + RENEWED_S
            except OSError:
                renewal = time.monotonic() + RETRY_S
            continue
        time.sleep(min(done, too_old, renewal) - now)


def main(address):
    server = Server(address)
    process = FIRST
    node = os.uname().nodename
    while True:
        token = f"{node}-{process}"
        too_old = acquire(server, process, token)
        if too_old is None:
            # Whoever does not know whether it has the lock takes a new name.
            process += 1
            time.sleep(RETRY_S)
            continue
        print("the lock is mine", flush=True)
        end = work(server, token, too_old)
        print("the lock is", end, flush=True)
        tell(process, "invoke", "release")
        try:
            server.ask("EVAL", DELETE, "1", "lock", token)
        except OSError:
            # The server keeps it until it expires.
            pass
        tell(process, "ok", "release")
        process += 1
        time.sleep(RETRY_S)


main(sys.argv[1])
