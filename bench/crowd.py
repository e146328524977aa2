"""`python bench/crowd.py [--rows 300000] [--rounds 100] [--orders 20000] [--crowd 60]`: the pages
of one seller while another sends so many requests at once, again and again.

A page's times are compared with its own quiet times on the same machine: those before each crowd,
all together, because the p99 of a few rounds is little more than the longest of them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

import ground
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import Report
from pages import a_shop, p99, timed

PAGES = ("/today", "/settings/shop", "/cards", "/orders", "/pricing")
# What the crowd asks for: a method and a path.
ASKED = {
    "presets": ("GET", "/api/pricing/presets"),
    "previews": ("POST", "/api/pricing/preview"),
    "previews as CSV": ("POST", "/api/pricing/preview?format=csv"),
    "presets, the page": ("GET", "/set-up/presets"),
    "pricing": ("GET", "/pricing"),
    "cards, a search": ("GET", "/api/cards?search=is:foil+price>5"),
    "exports": ("GET", "/api/cards/export.csv"),
    "price file": ("GET", "/api/pricing/updates.csv"),
    "archives": ("GET", "/api/export/everything"),
    "today": ("GET", "/today"),
    "status": ("GET", "/api/v1/status"),
}
Times = dict[str, list[float]]
UNREAD = ("/api/cards/export.csv", "/api/export/everything")


async def _sends(
    url: str, headers: dict[str, str], method: str, path: str, crowd: int, told: Connection
) -> None:
    """Ask with so many connections at once until the other end closes; return the statuses."""
    statuses: Counter[int] = Counter()
    limits = httpx.Limits(max_connections=crowd)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=600, limits=limits) as http:
        sent, all_sent = 0, asyncio.Event()

        async def noted(event: str, _: object) -> None:
            nonlocal sent
            if event == "http11.send_request_body.complete":
                sent += 1
                if sent == crowd:
                    all_sent.set()

        async def one() -> None:
            body: dict[str, object] | None = {} if method == "POST" else None
            while True:
                seen = {"trace": noted}
                async with http.stream(method, path, json=body, extensions=seen) as answer:
                    async for _ in answer.aiter_raw():
                        pass
                statuses[answer.status_code] += 1
                if answer.status_code == 503:
                    # A client comes again as the answer says, only sooner.
                    await asyncio.sleep(0.5)

        senders = [asyncio.create_task(one()) for _ in range(crowd)]
        # The crowd is slow to begin, because it takes what the others leave.
        await all_sent.wait()
        told.send("begun")
        await asyncio.to_thread(told.recv)
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
    told.send(dict(statuses))


def _send(
    url: str, headers: dict[str, str], method: str, path: str, crowd: int, told: Connection
) -> None:
    # The crowd's own machine is another one: here it takes what the others leave.
    os.nice(19)
    asyncio.run(_sends(url, headers, method, path, crowd, told))


@contextmanager
def crowding(
    url: str, headers: dict[str, str], asked: tuple[str, str], crowd: int
) -> Iterator[Counter[int]]:
    """Another process sends the requests while the block runs; the statuses are there afterwards."""
    statuses: Counter[int] = Counter()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_send, args=(url, headers, *asked, crowd, there)
    )
    process.start()
    try:
        here.recv()
        yield statuses
        here.send("end")
        statuses.update(here.recv())
        process.join(60)
    finally:
        process.kill()
        process.join()


@contextmanager
def unread(bind: str, headers: dict[str, str], path: str, crowd: int) -> Iterator[None]:
    """Ask for so many files, and read none of them."""
    host, _, port = bind.rpartition(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    sockets = []
    try:
        for _ in range(crowd):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect((host, int(port)))
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: {bind}\r\n{head}\r\n".encode())
            sockets.append(one)
        yield
    finally:
        for one in sockets:
            with suppress(OSError):
                one.close()


@contextmanager
def _session(url: str, seller: CreatedSeller) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=120) as http:
        credentials = {"email": seller.email, "password": seller.password}
        assert http.post("/api/session", json=credentials).status_code == 200
        yield http


def _times(http: httpx.Client, rounds: int) -> Times:
    found: Times = {page: [] for page in PAGES}
    for _ in range(rounds):
        for page, times in found.items():
            times.append(timed(http, page))
    return found


def _add(times: Times, more: Times) -> None:
    for page, found in more.items():
        times[page] += found


def _compare(report: Report, loud: dict[str, Times], quiet: Times, crowd: int) -> None:
    ratios = []
    for what, times in loud.items():
        for name, of in (("p50", statistics.median), ("p99", p99)):
            told = (f"{page} {of(quiet[page]):.0f} -> {of(times[page]):.0f}" for page in PAGES)
            report.note(f"{what}, {name} in ms: {', '.join(told)}")
        worst = max(p99(times[page]) / p99(quiet[page]) for page in PAGES)
        ratios.append(worst)
        report.figure(f"{what}: worst p99 of another's page / quiet", worst)
    report.figure(f"{crowd} x anything: worst p99 of another's page / quiet", max(ratios))


def measure(data: Path, rows: int, rounds: int, orders: int, crowd: int) -> Report:
    report = Report("One seller's crowd and another's pages")
    with ground.ground(data, rows, catalogs=False) as made:
        greedy, other = a_shop(made, orders), a_shop(made, orders)
        url = f"http://{made.settings.bind}"
        with ground.service(made, workers=0), _session(url, other) as http:
            with _session(url, greedy) as own:
                cookies = "; ".join(f"{name}={value}" for name, value in own.cookies.items())
                token = own.get("/api/session").json()["csrf_token"]
            member = {"Cookie": cookies, "X-CSRF-Token": token}
            agent = {"Authorization": f"Bearer {greedy.api_key}"}
            _times(http, 3)
            quiet: Times = {page: [] for page in PAGES}
            loud: dict[str, Times] = {}
            for what, asked in ASKED.items():
                _add(quiet, _times(http, rounds))
                headers = agent if asked[1].startswith("/api/v1") else member
                with crowding(url, headers, asked, crowd) as statuses:
                    loud[f"{crowd} x {what}"] = _times(http, rounds)
                report.note(f"{crowd} x {what}: answers {dict(statuses)}")
            for path in UNREAD:
                _add(quiet, _times(http, rounds))
                with unread(made.settings.bind, member, path, crowd):
                    loud[f"{crowd} x {path}, not read"] = _times(http, rounds)
            _compare(report, loud, quiet, crowd)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=100, orders=20_000, crowd=60)
