"""Finds what is wrong with a page that a browser shows: what axe-core reads, what is wider than the
window, what moved while it loaded, what it asked for in vain, and a first row far down.

The tests of pages ask it of a shop of their own. Over every page of an installation that runs, as
its owner, as staff and as a stranger: `make page-faults URL=… EMAIL=… PASSWORD=…`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pages import built, filled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
AXE_TEXT = AXE.read_text() if AXE.exists() else ""
WIDTHS = ((1440, 900), (1024, 768), (390, 844))
# The first row of a list is at most so far from the top of the window, on a phone below the head.
# The lists are the pages whose rows are what one comes for: elsewhere a table is one part of many.
ROWS_BEGIN = 230
LISTS = {
    "/cards", "/orders", "/customers", "/lists", "/activity", "/counts", "/pulls",
    "/recommendations", "/pricing/reviews", "/pricing/runs", "/pricing/pins", "/buying",
    "/buying/customers", "/buying/offers", "/sync/prices", "/sync/uploads", "/settings/people",
    "/settings/keys", "/settings/webhooks",
}  # fmt: skip
# Lists with a row of theirs open beside them.
BESIDE = ("/cards?card={card_id}", "/orders?order={order_id}")
# What a page still loads when it is left is broken off.
LEFT = ("net::ERR_ABORTED",)
# Parts of a page: what one asked for in vain is missing there.
PARTS = {"stylesheet", "script", "image", "font", "other", "manifest"}

VIOLATIONS = """() => axe.run(document).then(found => found.violations.map(
  one => [one.id, ...one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))"""
OVERFLOWING = """() => { const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > width + 1)
    .map(e => ['overflow', e.outerHTML.slice(0, 120)]).slice(0, 5); }"""
# What moved without anybody's input, with the first element of the largest shift.
SHIFTED = """() => new Promise(done => {
  const all = [];
  const of = new PerformanceObserver(list => all.push(...list.getEntries()));
  of.observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => {
    const moved = all.filter(one => !one.hadRecentInput).sort((a, b) => b.value - a.value);
    const sum = moved.reduce((sum, one) => sum + one.value, 0);
    const node = moved[0]?.sources[0]?.node;
    const name = (node?.nodeType === 3 ? node.parentElement : node)?.outerHTML?.slice(0, 120);
    done(sum > 0.02 ? [['shift', sum.toFixed(3), name || '']] : []); }, 50); })"""
ROWS_FAR_DOWN = """most => {
  const row = [...document.querySelectorAll('main [data-rows] > *')]
    .find(one => one.getClientRects().length);
  const head = innerWidth < 700 ? document.querySelector('main').offsetTop : 0;
  const top = row ? Math.round(row.getBoundingClientRect().top + scrollY) - head : 0;
  return top <= most ? [] : [['first row', top]]; }"""
NO_ICON = "() => document.querySelector('link[rel~=icon]') ? [] : [['no icon']]"


def found(page: Page) -> list[Any]:
    """Return the faults of the page that is shown. CSP does not bind the devtools."""
    page.evaluate(AXE_TEXT)
    is_list = urlsplit(page.url).path in LISTS
    return [
        *page.evaluate(VIOLATIONS),
        *page.evaluate(OVERFLOWING),
        *page.evaluate(SHIFTED),
        *(page.evaluate(ROWS_FAR_DOWN, ROWS_BEGIN) if is_list else ()),
        *page.evaluate(NO_ICON),
    ]


def settled(page: Page) -> None:
    """Wait for the parts that a page asks for once it is there: an idle network takes half a second
    more of each page.
    """
    from playwright.sync_api import expect

    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(
        0, timeout=60_000
    )


@contextmanager
def listening(page: Page, expected: Sequence[str] = LEFT) -> Iterator[list[str]]:
    """Collect what the browser complains of: the policy's violations, errors of scripts, requests
    that failed, and parts of a page that are not there.
    """
    said: list[str] = []

    def note(text: str) -> None:
        if not any(part in text for part in expected):
            said.append(text)

    def answered(answer: Any) -> None:
        if answer.status >= 400 and answer.request.resource_type in PARTS:
            said.append(f"{answer.status} {answer.url}")

    page.on("console", lambda message: note(message.text))
    page.on("pageerror", lambda error: note(str(error)))
    page.on("requestfailed", lambda request: note(f"{request.url}: {request.failure}"))
    page.on("response", answered)
    yield said


def signed_in(page: Page, email: str, password: str) -> None:
    page.goto("/sign-in")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/today")


class Made:
    """The ids that pages of one thing are asked with; what is not there is made, once."""

    def __init__(self, page: Page) -> None:
        self._request = page.request
        self._session = self.get("/api/session")

    def get(self, path: str) -> Any:
        return self._request.get(path).json()

    def post(self, path: str, data: Any) -> Any:
        headers = {"X-CSRF-Token": self._session["csrf_token"]}
        answer = self._request.post(path, data=data, headers=headers)
        assert answer.ok, (path, answer.text())
        return answer.json()

    def ids(self) -> dict[str, int | str]:
        """Return all but the ids of an upload and of a pull. The card is the first by name."""
        card = self.get("/api/cards?per_page=1&sort=name")["cards"][0]
        if not self.get("/api/lists")["lists"]:
            self.post("/api/lists", {"name": "Con box"})
        firsts = {
            "order_id": ("/api/orders?per_page=1&search=Buyer", "orders", "id"),
            "list_id": ("/api/lists", "lists", "id"),
            "cycle_id": ("/api/v1/sync/cycles", "cycles", "id"),
            "rule_id": ("/api/pricing/rules", "rules", "id"),
            "run_id": ("/api/pricing/runs", "runs", "id"),
            "key": ("/api/customers", "customers", "key"),
        }
        ids = {name: self.get(path)[rows][0][field] for name, (path, rows, field) in firsts.items()}
        return {
            **ids,
            "card_id": card["id"],
            "seller_id": self._session["seller"]["id"],
            "box": 1,
            "count_id": self._counted(card["id"]),
            "webhook_id": self._webhook(),
            "collection_id": self._collection(),
            **self._bought(card["product_id"]),
        }

    def pull(self) -> int:
        """Return the newest pull, or open one of all orders that wait."""
        known = re.search(r'href="/pulls/(\d+)"', self._request.get("/pulls").text())
        return int(known[1] if known else self.post("/api/pull_sessions", {})["id"])

    def strangers(self, session_id: int) -> dict[str, str]:
        """Return the addresses of pages that take no session."""
        link = {"session_id": session_id}
        [phone, *_] = self.post("/api/pull_links", link)["links"]
        offers = self.get("/api/buying/offers?status=offered")["offers"]
        shown = {"/sign-in": "/sign-in", "/invitations": "/invitations/none"}
        shown["/buylist"] = f"/buylist/{self._session['seller']['id']}"
        shown["/p"] = phone["url"][phone["url"].index("/p/") :]
        if offers:
            made = self.post(f"/api/buying/offers/{offers[0]['id']}/link", {})
            shown["/o"] = made["url"][made["url"].index("/o/") :]
        return shown

    def _webhook(self) -> int:
        known = self.get("/api/webhooks")["webhooks"]
        if known:
            return int(known[0]["id"])
        return int(self.post("/api/webhooks", {"url": "https://localhost/hook"})["webhook"]["id"])

    def _collection(self) -> int:
        # The same file twice is one collection.
        return int(self.post("/api/buying/collections", "4 Card 1\n")["id"])

    def _bought(self, product_id: int) -> dict[str, int]:
        """Make a buying customer and a draft offer."""
        for offer in self.get("/api/buying/offers")["offers"]:
            if offer["customer_id"]:
                return {"offer_id": offer["id"], "customer_id": offer["customer_id"]}
        customer = self.post("/api/buying/customers", {"name": "Mia Moss"})["id"]
        line = {"product_id": product_id, "condition": "NM", "copies": 2, "cash_each": "1.25"}
        offer = self.post("/api/buying/offers", {"lines": [line], "customer_id": customer})
        return {"offer_id": int(offer["id"]), "customer_id": int(customer)}

    def _counted(self, card_id: int) -> int:
        """Put a card into a box and begin its count."""
        known = self.get("/api/counts?box=1")["counts"]
        if known:
            return int(known[0]["id"])
        place = {"card_id": card_id, "box": 1, "slot": 1, "quantity": 1}
        self.post("/api/shelves/put", place)
        return int(self.post("/api/counts", {"box": 1})["id"])

    def staff(self, browser: Browser, base: str, email: str) -> str:
        """Let a new member of staff join; return the password."""
        invitation = {"email": email, "role": "staff"}
        token = self.post("/api/members/invitations", invitation)["invite_url"].split("/")[-1]
        password = "correct horse battery"
        context = browser.new_context(base_url=base)
        joined = context.request.post(
            f"/api/invitations/{token}", data={"name": "Bea", "password": password}
        )
        assert joined.ok, joined.text()
        context.close()
        return password


def _walked(page: Page, said: list[str], paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Look at every page at each width, light and dark: the page, and one of its faults."""
    for width, height in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        for path in paths:
            said.clear()
            page.emulate_media(color_scheme="light")
            page.goto(path)
            settled(page)
            page.wait_for_timeout(150)
            light = found(page)
            page.emulate_media(color_scheme="dark")
            dark = [one for one in page.evaluate(VIOLATIONS) if one not in light]
            for problem in [*light, *dark, *said]:
                yield f"{width} {path}", problem


def main(url: str, email: str, password: str) -> None:
    """Print the faults of every page, one line each."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        context = browser.new_context(base_url=url)
        page = context.new_page()
        signed_in(page, email, password)
        made = Made(page)
        upload = made.get("/api/v1/uploads")["uploads"][-1]["id"]
        ids = made.ids() | {"upload_id": upload, "session_id": made.pull()}
        paths = {
            "owner": [
                *(one.address(ids) for one in built() if "/operator" not in one.route),
                *(filled(address, ids) for address in BESIDE),
            ],
            "staff": [one.address(ids) for one in built() if not one.owner_only],
            "stranger": list(made.strangers(int(ids["session_id"])).values()),
        }
        address = f"staff-{secrets.token_hex(4)}@example.invalid"
        staff = (address, made.staff(browser, url, address))
        told = 0
        for who, member in (("owner", (email, password)), ("staff", staff), ("stranger", None)):
            context = browser.new_context(base_url=url)
            context.set_default_timeout(30_000)
            page = context.new_page()
            if member:
                signed_in(page, *member)
            with listening(page, (*LEFT, "status of 404")) as said:
                for where, problem in _walked(page, said, paths[who]):
                    told += 1
                    print(who, where, json.dumps(problem), flush=True)
            context.close()
        browser.close()
    print(f"{told} faults")


if __name__ == "__main__":
    main(*sys.argv[1:4])
