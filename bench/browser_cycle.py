"""`python bench/browser_cycle.py [--cards 20000] [--rounds 2]`: a whole cycle of the agent in a
real Chromium at the simulated marketplace, against the same downloads and uploads by bare HTTP, the
folder's cycle, and the loading of the same pages; and the agent's memory.

Both agents rest for no time between actions: a person's pace is a setting, and no cost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter, sleep

import httpx
import psutil

import ground
from ground import Ground, Report

sys.path.append(str(ground.HERE.parent / "tests"))
sys.path.append(str(ground.HERE.parent))

from tests.marketplace.server import Server, started
from tests.marketplace.shop import EMAIL, PASSWORD
from tests.system.browser_shops import PACE, browsers_of, set_up, sign_in_at

from cardsync_agent.browser.find_browser import find
from cardsync_agent.browser.start_browser import SellersBrowser

EXPORTS = (
    "/pricing/export.csv", "/orders/export.csv", "/orders/pull-sheet.csv", "/orders/shipping.csv",
    "/refunds/export.csv", "/feedback/export.csv", "/payments/report.csv", "/account/summary.csv",
)  # fmt: skip
# The pages that the workflows of a cycle open.
PAGES = (
    "/pricing", "/pricing/import", "/pricing/staged", "/orders", "/orders", "/orders", "/refunds",
    "/feedback", "/payments", "/payments", "/account", "/pricing/lookup", "/pricing",
)  # fmt: skip


def cycle(command: list[str], env: dict[str, str]) -> tuple[float, int]:
    """The seconds of one full cycle, and the most memory of the agent itself in bytes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cardsync_agent", "run", *command, "--once", "--request",
         "--json-events"],
        env=os.environ | PACE | env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    most, took = 0, 0.0
    for line in process.stdout:
        event = json.loads(line)
        most = max(most, psutil.Process(process.pid).memory_info().rss)
        if event["event"] == "cycle_finished":
            assert event["status"] in ("success", "partial"), event
            took = event["duration_ms"] / 1000
    process.wait()
    return took, most


def ask_for_more(made: Ground, key: str) -> None:
    """Let the one rule ask 3 % over the market, so that most prices change."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://{made.settings.bind}", headers=headers) as http:
        [rule] = http.get("/api/pricing/rules").json()["rules"]
        body = {"never_lower": False, "adjust_bp": 300, "cap": None}
        http.patch(f"/api/pricing/rules/{rule['id']}", json=body).raise_for_status()


def in_browser(made: Ground, market: Server, folder: Path) -> tuple[float, int, float]:
    """The cycle's seconds, the agent's memory, and the seconds in which the browser loads the
    pages.
    """
    seller = made.new_seller()
    ask_for_more(made, seller.api_key)
    set_up(folder, f"http://{made.settings.bind}", seller.api_key, market.address)
    profile = folder / ".cardsync-agent" / "browser"
    try:
        sign_in_at(str(profile), market.address)
        config = ["--config", str(folder / "agent.toml")]
        took, memory = cycle(config, {"CARDSYNC_AGENT_PACKS": str(folder / "packs")})
        found = find(os.environ)
        assert found is not None
        browser = SellersBrowser(found, profile, headless=True)
        page = browser.page()
        begun = perf_counter()
        for path in PAGES:
            page.goto(market.address + path, wait_until="domcontentloaded")
        pages = perf_counter() - begun
        browser.release()
    finally:
        for pid in browsers_of(folder):
            os.kill(pid, signal.SIGKILL)
        sleep(0.5)
    return took, memory, pages


def by_http(made: Ground, market: Server, folder: Path) -> float:
    """The seconds of the exports, the folder's cycle and the import, without a browser."""
    seller = made.new_seller()
    ask_for_more(made, seller.api_key)
    (folder / "inbox").mkdir(parents=True)
    with httpx.Client(base_url=market.address, follow_redirects=True, timeout=300) as http:
        http.post("/sign-in", data={"email": EMAIL, "password": PASSWORD, "next": "/"})
        code = http.get("/_state", params={"rows": "0"}).json()["second_factor_code"]
        http.post("/second-factor", data={"code": code, "next": "/"})
        begun = perf_counter()
        for path in EXPORTS:
            answer = http.get(path)
            assert answer.status_code == 200, (path, answer.text[:200])
            file = folder / "inbox" / path[1:].replace("/", "-")
            file.write_bytes(answer.content)
        downloads = perf_counter() - begun
        sleep(2.1)  # a file of the inbox counts when it is so old
        url, key = f"http://{made.settings.bind}", seller.api_key
        took, _ = cycle(["--server", url, "--key", key, "--folder", str(folder)], {})
        [prices] = (folder / "outbox").glob("*.csv")
        begun = perf_counter()
        answer = http.post(
            "/pricing/import", files={"file": (prices.name, prices.read_bytes(), "text/csv")}
        )
        number = answer.url.path.rsplit("/", 1)[1]
        http.get(f"/pricing/imports/{number}/report.csv")
        http.post(f"/pricing/imports/{number}/publish")
        assert http.get("/pricing/export.csv").status_code == 200  # all prices are read back
        imported = perf_counter() - begun
        [one] = http.get("/_state").json()["imports"]
        assert one["published"], one
    return downloads + took + imported


def measure(data: Path, rows: int, cards: int = 20_000, rounds: int = 2) -> Report:
    report = Report("Cycle in the browser")
    if find(os.environ) is None:
        raise SystemExit("no Chromium on this machine: nothing measured")
    with (
        ground.ground(data, min(rows, 1_000), catalogs=False) as made,
        ground.service(made, workers=1),
    ):
        ratios, most = [], 0
        for number in range(rounds):
            markets = [started(rows=cards, orders=400, today=date.today()) for _ in range(2)]
            try:
                folder = made.folder / str(number)
                floor = by_http(made, markets[0], folder / "folder")
                took, memory, pages = in_browser(made, markets[1], folder / "browser")
            finally:
                for market in markets:
                    market.stop()
            ratios.append(took / (floor + pages))
            most = max(most, memory)
            report.note(
                f"{cards:,} cards: cycle in the browser {took:.1f} s; by HTTP {floor:.1f} s, and"
                f" {len(PAGES)} pages {pages:.1f} s"
            )
        what = "a cycle in the browser / the same by HTTP and the pages"
        report.figure(what, sorted(ratios)[len(ratios) // 2])
        report.figure("memory of the agent without the browser", most / 1e6, "MB")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, cards=20_000, rounds=2)
