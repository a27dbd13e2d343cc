"""Asks for every order that was acknowledged. Each of them must be there."""

import sys
import time

from http11 import Connection


def statuses(orders):
    """Yields the status of each order. All answers come over one connection, until it breaks."""
    connection = None
    for order in orders:
        for _ in range(50):
            try:
                connection = connection or Connection()
                answer = connection.request("GET", f"/orders/{order}")
                if answer != 503:
                    yield answer
                    break
            except OSError:
                connection = None
            time.sleep(0.2)
        else:
            sys.exit(f"order {order}: the shop does not answer")


orders = [int(line) for line in open("/placed/orders")]
lost = [order for order, status in zip(orders, statuses(orders)) if status != 200]
if lost:
    print(f"{len(lost)} of {len(orders)} acknowledged orders are lost, the first is {lost[0]}")
    sys.exit(1)
print(f"all {len(orders)} acknowledged orders are there")
