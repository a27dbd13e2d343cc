"""A connection to a replica: a line is a request, and the answer is some lines and a dot."""

import socket

PORT = 7000


class Connection:
    def __init__(self, host, timeout):
        self.socket = socket.create_connection((host, PORT), timeout)
        self.socket.settimeout(timeout)

    def ask(self, line):
        """Returns the lines of the answer; raises OSError if there is none in time."""
        self.socket.sendall(line.encode() + b"\n")
        answer = b""
        while answer != b".\n" and not answer.endswith(b"\n.\n"):
            more = self.socket.recv(65536)
            if not more:
                raise OSError("the connection was closed")
            answer += more
        return answer.decode().splitlines()[:-1]

    def close(self):
        self.socket.close()
