# Count up in Redis, one acknowledged number after the other; the last one is kept in a file, on a machine that does not fail.
import socket
import time

last = 0
while True:
    try:
        # A connection to a machine that lost power is noticed soon, and a new one does not wait for a second SYN.
        connection = socket.create_connection(("db", 6379), timeout=0.1)
        connection.settimeout(0.5)
        replies = connection.makefile("rb")
        connection.sendall(b"INCR numbers\r\n")
        while (reply := replies.readline()).endswith(b"\r\n"):
            # ":17" is a number; an error says that Redis still reads its file.
            if not reply.startswith(b":"):
                break
            number = int(reply[1:])
            if number <= last:
                raise SystemExit(f"LOST: {last} was acknowledged, then came {number}")
            last = number
            with open("/tmp/acknowledged", "w") as file:
                file.write(str(last))
            connection.sendall(b"INCR numbers\r\n")
        connection.close()
    except OSError:
        pass
    time.sleep(0.02)
