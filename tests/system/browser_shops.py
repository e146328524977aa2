"""Shops whose agent drives a real Chromium at the simulated marketplace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from tests.contract.agent_process import Ended
from tests.marketplace.server import Server as Market
from tests.marketplace.server import started
from tests.marketplace.shop import EMAIL, PASSWORD
from tests.system.processes import Seller

from cardsync_agent.browser.find_browser import find
from cardsync_agent.browser.start_browser import SellersBrowser

PACKS = Path(__file__).parents[2] / "agent" / "packs"
PACE = {
    "CARDSYNC_AGENT_PACE_RETRY_FIRST": "0.1",
    "CARDSYNC_AGENT_PACE_RETRY_MOST": "0.3",
    "CARDSYNC_AGENT_PACE_POLL_FIRST": "0.02",
    "CARDSYNC_AGENT_PACE_POLL_MOST": "0.1",
    "CARDSYNC_AGENT_BROWSER_REST_LEAST": "0",
    "CARDSYNC_AGENT_BROWSER_REST_MOST": "0",
    "CARDSYNC_AGENT_BROWSER_ELEMENT": "6",
    "CARDSYNC_AGENT_BROWSER_OPTIONAL": "0.3",
    "CARDSYNC_AGENT_BROWSER_TURN_LOOK": "0.2",
    "CARDSYNC_AGENT_BROWSER_TURN_MOST": "60",
    "CARDSYNC_AGENT_HEADLESS": "1",
}


@dataclass
class BrowserShop:
    """A seller, the folder of its agent, and its marketplace."""

    seller: Seller
    folder: Path
    market: Market

    @property
    def profile(self) -> Path:
        return self.folder / ".cardsync-agent" / "browser"

    def sign_in(self) -> None:
        """Sign in as the person does, in the agent's own browser."""
        sign_in_at(str(self.profile), self.market.address)

    def sign_in_elsewhere(self) -> None:
        """The same beside a running agent, whose loop has Playwright in another thread."""
        program = "import sys; from tests.system.browser_shops import sign_in_at; sign_in_at(*sys.argv[1:])"
        subprocess.run(
            [sys.executable, "-c", program, str(self.profile), self.market.address],
            check=True, cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip

    def until_done(self) -> None:
        """Run the agent until a cycle with prices ends well."""
        for _ in range(4):
            ended = self.once()
            if any(one["status"] == "success" for one in ended.named("cycle_finished")):
                return
        raise AssertionError(ended.events)

    def confirm_repairs(self) -> None:
        command = [sys.executable, "-m", "cardsync_agent", "repairs", "--folder", str(self.folder)]
        told = subprocess.run(
            [*command, "--json-events"], capture_output=True, text=True, check=True
        ).stdout
        for repair in map(json.loads, told.splitlines()):
            if repair["state"] == "proposed":
                subprocess.run([*command, "--confirm", str(repair["number"])], check=True)

    def state(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"{self.market.address}/_state").json()
        return answer

    def control(self, **told: Any) -> dict[str, Any]:
        """Set a fault or a switch of the marketplace; return those that hold."""
        answer = httpx.post(f"{self.market.address}/_control", json=told).raise_for_status()
        holding: dict[str, Any] = answer.json()
        return holding

    def published(self) -> list[dict[str, Any]]:
        return [one for one in self.state()["imports"] if one["status"] == "published"]

    def price_above_market(self, basis_points: int) -> None:
        """Let the one rule ask this much over the market's price, whatever the price is now."""
        with self.seller.http() as http:
            [rule] = http.get("/api/pricing/rules").json()["rules"]
            body = {"never_lower": False, "adjust_bp": basis_points, "cap": None}
            http.patch(f"/api/pricing/rules/{rule['id']}", json=body).raise_for_status()

    def set_account(self, change: str) -> None:
        """Change the account as the operator does: `sync_mode = 'read_only'`."""
        self.seller.sql(
            f"UPDATE account SET {change} WHERE seller_id = %(seller)s RETURNING seller_id"
        )

    def command(self, *options: str) -> list[str]:
        return [
            sys.executable, "-m", "cardsync_agent", "run", "--config",
            str(self.folder / "agent.toml"), "--json-events", *options,
        ]  # fmt: skip

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, **PACE, "CARDSYNC_AGENT_PACKS": str(self.folder / "packs"), **more}

    def once(self, *options: str, **env: str) -> Ended:
        """Run one cycle that was asked for."""
        ended = subprocess.run(
            self.command("--once", *(options or ("--request",))), env=self.env(**env),
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        events = [json.loads(line) for line in ended.stdout.splitlines()]
        return Ended(ended.returncode, events, [], ended.stderr)

    def steps(self, ended: Ended) -> dict[str, tuple[str, str | None]]:
        return {one["step"]: (one["status"], one["error"]) for one in ended.named("step_finished")}

    def cycles(self) -> list[dict[str, Any]]:
        return self.seller.sql("SELECT * FROM sync_cycle WHERE seller_id = %(seller)s ORDER BY id")


def sign_in_at(profile: str, address: str) -> None:
    """Type into the pages of sign-in and second factor in the browser of a profile."""
    found = find(os.environ)
    assert found is not None
    browser = SellersBrowser(found, Path(profile), headless=True)
    try:
        page = browser.page()
        page.goto(f"{address}/sign-in")
        page.locator("input[type=email]").fill(EMAIL)
        page.locator("input[type=password]").fill(PASSWORD)
        page.locator("input[type=password]").press("Enter")
        page.wait_for_url(lambda url: "second-factor" in url)
        code = page.locator("form input:not([type=hidden])").last
        code.fill(httpx.get(f"{address}/_state").json()["second_factor_code"])
        code.press("Enter")
        page.wait_for_url(lambda url: "second-factor" not in url)
    finally:
        browser.release()


@contextmanager
def browser_shop(
    seller: Seller, folder: Path, *, design: int = 1, rows: int = 60, orders: int = 12
) -> Iterator[BrowserShop]:
    market = started(port=0, design=design, rows=rows, orders=orders, state=None)
    try:
        set_up(folder, seller.server.url, seller.api_key, market.address)
        yield BrowserShop(seller, folder, market)
    finally:
        for process in browsers_of(folder):
            os.kill(process, signal.SIGKILL)
        market.stop()


def set_up(folder: Path, server: str, key: str, market: str) -> None:
    """Write the agent's settings, its key, and the pack with the marketplace's address."""
    pack = json.loads((PACKS / "simulated" / "pack.json").read_text())
    pack["origins"] = [market]
    (folder / "packs" / "simulated").mkdir(parents=True)
    (folder / "packs" / "simulated" / "pack.json").write_text(json.dumps(pack))
    (folder / "key").write_text(key)
    (folder / "agent.toml").write_text(
        f'[shop.cards]\nserver = "{server}"\nfolder = "{folder}"\n'
        f'key_file = "{folder / "key"}"\nadapter = "browser"\n'
        f'[shop.cards.browser]\nmarketplace = "{pack["marketplace"]}"\n'
        f'locale = "{pack["locale"]}"\n'
    )


def browsers_of(folder: Path) -> list[int]:
    profile = f"--user-data-dir={folder}"
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(part.startswith(profile) for part in process.info["cmdline"] or ())
    ]
