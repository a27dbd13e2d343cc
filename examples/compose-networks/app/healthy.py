"""Ends with status 0 if the gateway answers, and the ledger behind it."""

import sys

from http11 import request

try:
    sys.exit(request("GET", "/health", host="127.0.0.1") != 200)
except OSError:
    sys.exit(1)
