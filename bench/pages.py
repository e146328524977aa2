"""`python bench/pages.py [--rows 300000] [--rounds 200]`: each page over HTTP beside the JSON read
that it shows, asked in turn by the same member's session.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

import ground
import import_inventory
from ground import Report

# A page and the JSON reads that it shows.
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "today": ("/today", ("/api/today", "/api/listed_value", "/api/movers")),
    "cards": ("/cards", ("/api/cards",)),
    "cards, a search": (
        "/cards?search=is:foil+price>5",
        ("/api/cards?search=is:foil+price>5",),
    ),
    "card": ("/cards/{card}", ("/api/cards/{card}", "/api/v1/pricing/explain/{listing}")),
    "completion of a set": ("/api/cards/complete?text=set:a", ()),
}


def timed(http: httpx.Client, path: str) -> float:
    began = perf_counter()
    answer = http.get(path)
    took = (perf_counter() - began) * 1000
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:200])
    return took


def p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("The pages")
    with ground.ground(data, rows) as made:
        seller = made.new_seller()
        with ground.service(made, workers=1):
            import_inventory.upload(made, seller.api_key, made.inventory.read_bytes())
        with (
            ground.service(made, workers=0),
            httpx.Client(base_url=f"http://{made.settings.bind}", timeout=120) as http,
        ):
            credentials = {"email": seller.email, "password": seller.password}
            assert http.post("/api/session", json=credentials).status_code == 200
            card: dict[str, Any] = json.loads(http.get("/api/cards?per_page=1").text)["cards"][0]
            ids = {"card": card["id"], "listing": card["marketplace_id"]}
            for name, (page, reads) in PAGES.items():
                _one(report, http, name, page.format(**ids), [one.format(**ids) for one in reads], rounds)  # fmt: skip
    return report


def _one(
    report: Report, http: httpx.Client, name: str, page: str, reads: list[str], rounds: int
) -> None:
    pages, beside = [], []
    for turn in range(rounds + 5):
        took, read = timed(http, page), sum(timed(http, path) for path in reads)
        if turn >= 5:
            pages.append(took)
            beside.append(read)
    report.at_most(f"{name}: p50", statistics.median(pages), 30, "ms")
    report.at_most(f"{name}: p99", p99(pages), 120, "ms")
    if reads:
        ratio = statistics.median(pages) / statistics.median(beside)
        report.at_most(f"{name}: beside its JSON", ratio, 1.3)


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=200)
