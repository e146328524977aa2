"""`python -m tests.marketplace --port N --design 1|2|3 --rows N`: starts the simulated marketplace
and prints its address and a seller's sign-in.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from datetime import date
from pathlib import Path

from .server import started
from .shop import CODE, EMAIL, PASSWORD


def main() -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.marketplace", description=__doc__)
    ask.add_argument("--port", type=int, default=8765, help="0 takes a free one")
    ask.add_argument("--design", type=int, choices=(1, 2, 3), default=1)
    ask.add_argument("--rows", type=int, default=500, help="cards in the pricing export")
    ask.add_argument("--orders", type=int, default=120)
    ask.add_argument("--today", type=date.fromisoformat)
    ask.add_argument("--state", type=Path, help="a file that keeps the state over a restart")
    told = ask.parse_args()
    server = started(
        port=told.port, design=told.design, rows=told.rows, orders=told.orders,
        today=told.today, state=told.state,
    )  # fmt: skip
    print(f"marketplace on {server.address}", flush=True)
    print(f"sign in with {EMAIL} and {PASSWORD}", flush=True)
    print(f"the code of the second factor is {CODE}", flush=True)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    over.wait()
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
