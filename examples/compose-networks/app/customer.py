"""Places orders one after the other, as a customer of the shop. Those that were acknowledged are written to /placed/orders."""

import os
import time

from http11 import request

placed = os.open("/placed/orders", os.O_RDWR | os.O_CREAT | os.O_APPEND)
lines = os.read(placed, 1 << 20).split()
# A number that was tried before the machine lost power is not tried again.
order = int(lines[-1]) + 1000 if lines else 1
while True:
    try:
        if request("POST", f"/orders/{order}") == 201:
            os.write(placed, b"%d\n" % order)
            os.fsync(placed)
            if order % 20 == 0:
                print("placed", order, flush=True)
    except OSError:
        pass
    order += 1
    time.sleep(0.05)
