"""Asks for every order that was acknowledged. Each of them must be there."""

import sys
import time

from http11 import request


def status(order):
    for _ in range(50):
        try:
            answer = request("GET", f"/orders/{order}")
            if answer != 503:
                return answer
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"order {order}: the shop does not answer")


orders = [int(line) for line in open("/placed/orders")]
lost = [order for order in orders if status(order) != 200]
if lost:
    print(f"{len(lost)} of {len(orders)} acknowledged orders are lost, the first is {lost[0]}")
    sys.exit(1)
print(f"all {len(orders)} acknowledged orders are there")
