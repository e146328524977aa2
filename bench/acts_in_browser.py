"""Measures what a person does on the pages of a large shop, in Debian's chromium: approve a price,
change one in place, find anything, and scroll the table of cards to any place.

An act's time runs in the page, from the click or key until the row has changed. A scroll's runs
until the rows of that place are there; the first one also fetches the order of all cards.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any

import httpx

from ground import MB

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from ground import Report

WIDE = {"width": 1_440, "height": 900}
WORDS = (
    "lotus", "dragon", "base set", "smith", "is:foil", "pika", "r:rare price>5", "zzz", "shelv",
    "1st edition", "o", "Order", "anna", "island", "e",
)  # fmt: skip
# The palette's cards (js/app.js).
CARDS = 6
# The milliseconds from an act until a test of the page holds.
UNTIL = """
([act, done]) => new Promise(resolve => {
  const began = performance.now();
  const look = () => eval(done) ? resolve(performance.now() - began) : requestAnimationFrame(look);
  window.scene = eval(act);
  look();
})
"""
# An act begins when the page and its server are idle: a state such as networkidle, once reached,
# is not waited for again.
IDLE_MS = 700
ROWS = "document.querySelectorAll('tr[data-swipes]')"
APPROVE = f"""(() => {{
  const row = {ROWS}[0];
  row.querySelector("button[value^=accepted]").click();
  return row.querySelector("input[name=take]").value;
}})()"""
APPROVED = "!document.querySelector(`input[name=take][value='${window.scene}']`)"
TOAST = "document.querySelector('#notices .toast')"
ENTER = """(() => {
  const toast = document.querySelector('#notices .toast');
  document.activeElement.dispatchEvent(
    new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  return toast;
})()"""
SAVED = f"{TOAST} && {TOAST} !== window.scene"
# In sight is a row of cards at the middle of the table.
IN_SIGHT = """(() => {
  const box = document.querySelector('.table.tall').getBoundingClientRect();
  const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return Boolean(at?.closest('tbody[data-page]'));
})()"""


def measure(report: Report, http: httpx.Client, cookies: Mapping[str, str], rounds: int) -> None:
    _find(report, http, rounds)
    chromium = shutil.which("chromium")
    if chromium is None:
        report.note("there is no chromium: nothing that a person does is measured")
        return
    from playwright.sync_api import sync_playwright

    address = str(http.base_url)
    options = {"args": ["--no-sandbox"] if os.getuid() == 0 else []}
    jar: list[Any] = [{"name": n, "value": v, "url": address} for n, v in cookies.items()]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, **options)
        rounds = min(rounds, 20)
        for act in (_approve, _edit, _scroll):
            # The pages' policy allows no script that is made of text.
            with browser.new_context(viewport=WIDE, bypass_csp=True) as context:
                context.add_cookies(jar)
                act(report, context.new_page(), address, rounds)
        browser.close()


def _find(report: Report, http: httpx.Client, rounds: int) -> None:
    """The palette asks for cards, names and orders at once, and shows each as it arrives. If few
    cards in stock match, it then asks for sold-out ones.
    """

    def asked(part: str, words: str) -> tuple[float, float]:
        """The times until something is found, or 0, and until the last answer."""
        began, found = perf_counter(), 0.0
        for one in (part, "sold_out") if part == "cards" else (part,):
            answer = http.get("/find", params={"search": words, "part": one})
            answer.raise_for_status()
            hits = answer.text.count("data-found")
            if hits and not found:
                found = (perf_counter() - began) * 1000
            if hits >= CARDS:
                break
        return found, (perf_counter() - began) * 1000

    firsts, wholes = list[float](), list[float]()
    with ThreadPoolExecutor(3) as threads:
        for turn in range(rounds + 3):
            words = WORDS[turn % len(WORDS)]
            answers = list(threads.map(asked, ("cards", "names", "orders"), [words] * 3))
            if turn < 3:
                continue
            wholes.append(max(whole for _, whole in answers))
            firsts.append(min((first for first, _ in answers if first), default=0))
    firsts = [took for took in firsts if took]
    report.note(f"anything found, first results: p50 {statistics.median(firsts):.0f} ms")
    report.note(f"anything found, whole: p50 {statistics.median(wholes):.0f} ms")
    report.note(f"anything found, whole: p99 {_p99(wholes):.0f} ms")
    report.figure("anything found, first results: p99", _p99(firsts), "ms")


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


def _approve(report: Report, page: Page, address: str, rounds: int) -> None:
    page.goto(f"{address}/pricing/reviews")
    page.wait_for_load_state("networkidle")
    times = []
    for _ in range(rounds):
        times.append(page.evaluate(UNTIL, [APPROVE, APPROVED]))
        page.wait_for_timeout(IDLE_MS)
    report.figure("approve to the changed row: p50", statistics.median(times), "ms")


def _edit(report: Report, page: Page, address: str, rounds: int) -> None:
    page.goto(f"{address}/cards")
    page.wait_for_load_state("networkidle")
    times = []
    for turn in range(rounds):
        cell = page.locator("[data-rows] > tr").nth(turn % 15).locator("td.price")
        cell.dblclick()
        page.keyboard.type(f"{100 + turn}.00")
        times.append(page.evaluate(UNTIL, [ENTER, SAVED]))
        page.wait_for_timeout(IDLE_MS)
    report.figure("price in place to saved: p50", statistics.median(times), "ms")


def _scroll(report: Report, page: Page, address: str, rounds: int) -> None:
    protocol = page.context.new_cdp_session(page)
    protocol.send("Performance.enable")

    def used() -> float:
        protocol.send("HeapProfiler.collectGarbage")
        figures = protocol.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in figures if one["name"] == "JSHeapUsedSize") / MB

    page.goto(f"{address}/cards")
    page.wait_for_load_state("networkidle")
    before, dice, times = used(), random.Random(7), []
    for _ in range(rounds):
        to = f"document.querySelector('.table.tall').scrollTop = {dice.random()}"
        act = f"{to} * document.querySelector('.table.tall').scrollHeight"
        # The next frame shows the place that was scrolled to.
        times.append(page.evaluate(UNTIL, [act, IN_SIGHT]))
        page.wait_for_timeout(IDLE_MS)
    after = used()
    report.note(f"first scroll {times[0]:.0f} ms; scripts keep {before:.0f}, then {after:.0f} MB")
    report.figure("scroll to any place: p50", statistics.median(times), "ms")
    report.figure("scroll: memory of scripts", after, "MB")
