"""The gateway. POST /orders/ID keeps an order in the ledger, GET /orders/ID asks for one.

The ledger has half a second to answer. With WHEN_SLOW=accept the gateway then accepts the order all the same, keeps it in memory,
and tries twice more in the background. With WHEN_SLOW=refuse it answers that the shop is busy.
"""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

ACCEPT = os.environ.get("WHEN_SLOW") == "accept"
PATIENCE_S = 0.5
ATTEMPTS = 2
ledger = redis.Redis(os.environ["LEDGER"], socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)


def keep_later(order):
    for _ in range(ATTEMPTS):
        time.sleep(PATIENCE_S)
        try:
            ledger.sadd("orders", order)
            return
        except redis.RedisError:
            pass
    print(f"the ledger does not answer; order {order} is dropped", flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        try:
            if self.path == "/health":
                return self.answer(200 if ledger.ping() else 503)
            found = ledger.sismember("orders", int(self.path.rsplit("/", 1)[1]))
            self.answer(200 if found else 404)
        except redis.RedisError:
            self.answer(503)

    def do_POST(self):
        order = int(self.path.rsplit("/", 1)[1])
        try:
            ledger.sadd("orders", order)
        except redis.RedisError:
            if not ACCEPT:
                return self.answer(503)
            threading.Thread(target=keep_later, args=(order,), daemon=True).start()
        self.answer(201)

    def log_message(self, *_):
        pass


print("the gateway is open", flush=True)
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
