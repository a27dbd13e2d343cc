"""One HTTP request on one connection, without the modules that take long to import."""

import socket


def request(method, path, host="shop", port=8000, timeout=3):
    """Returns the status of the answer; raises OSError if there is none."""
    with socket.create_connection((host, port), timeout) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        answer = b""
        while b"\r\n" not in answer:
            more = connection.recv(4096)
            if not more:
                raise OSError("the connection was closed")
            answer += more
    return int(answer.split()[1])
