"""Redis' protocol and Everett's operation histories, in a few lines: what client.py and check.py share.

`_socket` is what Python's `socket` is built on. Loading that one takes as many instructions as a second of the whole world, in each
timeline.
"""

import os
from _socket import SOL_TCP, TCP_NODELAY, socket

# Outside of Everett the history goes to standard output.
HISTORY = int(os.environ.get("EVERETT_HISTORY", "1"))
CHUNK_BYTES = 65536


def tell(process, kind, f, value):
    """One line of the history, in one write. It returns when the host has the line."""
    line = f'{{"process":{process},"type":"{kind}","f":"{f}","value":{value}}}\n'.encode()
    while line:
        line = line[os.write(HISTORY, line) :]


class Refused(Exception):
    """The server said no."""


class Connection:
    """Whatever goes wrong with it is an OSError. Nothing takes longer than `seconds`."""

    def __init__(self, address, port, seconds):
        self.rest = b""
        self.socket = socket()
        self.socket.settimeout(seconds)
        self.socket.setsockopt(SOL_TCP, TCP_NODELAY, 1)
        try:
            self.socket.connect((address, port))
        except OSError:
            self.close()
            raise

    def ask(self, *words):
        self.socket.sendall((" ".join(map(str, words)) + "\r\n").encode())
        return self.reply()

    def reply(self):
        end = self.rest.find(b"\r\n")
        while end < 0:
            self.more()
            end = self.rest.find(b"\r\n")
        kind, text = self.rest[:1], self.rest[1:end].decode()
        self.rest = self.rest[end + 2 :]
        if kind == b"-":
            raise Refused(text)
        if kind == b":":
            return int(text)
        if kind == b"+" or text == "-1":
            return text if kind == b"+" else None
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        length = int(text)
        while len(self.rest) < length + 2:
            self.more()
        text, self.rest = self.rest[:length].decode(), self.rest[length + 2 :]
        return text

    def more(self):
        chunk = self.socket.recv(CHUNK_BYTES)
        if not chunk:
            raise OSError("the connection ended")
        self.rest += chunk

    def close(self):
        self.socket.close()


def ask_once(address, port, seconds, *words):
    connection = Connection(address, port, seconds)
    try:
        return connection.ask(*words)
    finally:
        connection.close()
