"""HTTP requests, without the modules that take long to import."""

import socket


class Connection:
    """One connection to a server, for one request after the other. Each call raises OSError if there is no answer."""

    def __init__(self, host="web", port=8000, timeout=3):
        self.socket = socket.create_connection((host, port), timeout)
        self.answers = self.socket.makefile("rb")
        self.host = host

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answers.close()
        self.socket.close()

    def request(self, method, path):
        """Returns the status of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: 0\r\n\r\n"
        self.socket.sendall(head.encode())
        status = self.line().split()[1]
        length = 0
        while line := self.line():
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        self.answers.read(length)
        return int(status)

    def line(self):
        """Returns one line of the answer's head, without its end."""
        line = self.answers.readline(4096)
        if not line.endswith(b"\r\n"):
            raise OSError("the connection was closed")
        return line[:-2]


def request(method, path, host="web"):
    """Returns the status of the answer to one request on a connection of its own."""
    with Connection(host) as connection:
        return connection.request(method, path)
