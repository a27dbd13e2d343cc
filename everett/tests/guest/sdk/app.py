# A program with every call of the Python SDK. Its assertions have the same outcomes wherever it runs.
import sys, time
import antithesis.assertions as a
from antithesis import lifecycle, random

always = {"always holds": True, "always fails": False}
for message, condition in always.items():
    a.always(condition, message, {"n": 1, "why": "a test"})
a.always_or_unreachable(True, "holds or is unreachable", None)
a.always_or_unreachable(False, "fails and is not unreachable", {"list": [1, None, {"x": "\u00e9"}]})
a.sometimes(True, "sometimes holds", None)
a.sometimes(False, "sometimes never holds", {})
a.reachable("is reached", {"text": "x" * 20000})
a.unreachable("should not be reached", None)
if len(sys.argv) > 5:
    a.always(True, "always is never evaluated", None)
    a.sometimes(True, "sometimes is never evaluated", None)
    a.reachable("is never reached", None)
    a.unreachable("is unreachable", None)
    a.always_or_unreachable(True, "is unreachable, and would hold", None)
a.always_greater_than(5, 3, "is greater", None)
a.always_greater_than_or_equal_to(3, 3, "is not less", None)
a.always_less_than(2.5, 1.5, "is not less, and fails", None)
a.always_less_than_or_equal_to(1, 2, "is less or equal", None)
a.sometimes_greater_than(1, 9, "never greater", None)
a.sometimes_greater_than_or_equal_to(9, 9, "once not less", None)
a.sometimes_less_than(1, 2, "once less", None)
a.sometimes_less_than_or_equal_to(3, 2, "never less or equal", None)
a.always_some({"left": False, "right": True}, "one of them", None)
a.sometimes_all({"left": False, "right": True}, "all of them", None)
lifecycle.send_event("prepared", {"size": 3})
lifecycle.setup_complete({"ready": True})
lifecycle.setup_complete({"ready": "again"})
print("python", sys.version_info[:2], flush=True)
if "--once" not in sys.argv:
    while True:
        # The last number is a better value for the search on some timelines.
        number = random.get_random()
        print("random", number, random.random_choice([1, 2, 3]), flush=True)
        a.sometimes_greater_than(number & 0xffff, 1 << 16, "reaches the top", None)
        time.sleep(0.05)
