"""The web server. POST /orders/ID places an order, GET /orders/ID asks for one.

With ACKNOWLEDGE=early an order is acknowledged when it is in a queue, which is committed twice a second. With
ACKNOWLEDGE=committed it is acknowledged when the database has committed it.
"""

import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import redis

EARLY = os.environ.get("ACKNOWLEDGE") == "early"
counter = redis.Redis(os.environ["REDIS_HOST"], socket_timeout=1, socket_connect_timeout=1)
orders = queue.Queue()
local = threading.local()


def database():
    """Returns this thread's connection."""
    if getattr(local, "connection", None) is None:
        local.connection = psycopg2.connect(os.environ["DATABASE_URL"], connect_timeout=2)
        local.connection.autocommit = True
    return local.connection


def execute(statement, *values):
    """Executes a statement, and returns the rows. After an error the next statement has a new connection."""
    try:
        with database().cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
    except psycopg2.Error:
        local.connection = None
        raise


def commit(order):
    execute("INSERT INTO orders VALUES (%s) ON CONFLICT DO NOTHING", order)


def commit_later():
    """Commits the orders of the queue twice a second, and tries again until they are committed."""
    while True:
        time.sleep(0.5)
        while not orders.empty():
            order = orders.get()
            while True:
                try:
                    commit(order)
                    break
                except psycopg2.Error as error:
                    print("database:", str(error).strip(), flush=True)
                    time.sleep(0.1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        try:
            if self.path == "/health":
                execute("SELECT 1")
                return self.answer(200, "ok")
            found = execute("SELECT id FROM orders WHERE id = %s", int(self.path.rsplit("/", 1)[1]))
            self.answer(200 if found else 404, "")
        except psycopg2.Error:
            self.answer(503, "")

    def do_POST(self):
        order = int(self.path.rsplit("/", 1)[1])
        try:
            if EARLY:
                orders.put(order)
            else:
                commit(order)
        except psycopg2.Error:
            return self.answer(503, "")
        try:
            counter.incr("orders")
        except redis.RedisError:
            pass  # The count is a matter of looks.
        self.answer(201, "")

    def log_message(self, *_):
        pass


while True:
    try:
        execute("CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY)")
        break
    except psycopg2.Error as error:
        print("database:", str(error).strip(), flush=True)
        time.sleep(0.2)
threading.Thread(target=commit_later, daemon=True).start()
print("the shop is open", flush=True)
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
