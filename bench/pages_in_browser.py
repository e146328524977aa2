"""Measures pages in Debian's chromium with a processor slowed four times, by the DevTools protocol:
the largest paint, the shift of the layout, the time that scripts block, and the bytes on the wire.

Each page is opened with an empty cache; the worst of a few rounds would be chance, so the median
counts. The largest of 16 medians of three rounds would be chance, too, so there are seven. Without chromium nothing is measured, and the report says so.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from ground import Report

PAGES = ("today", "cards", "card", "orders", "order", "pricing", "sales", "sync")
ROUNDS = 7
SLOWED = 4
LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 3,
        "is_mobile": True,
        "has_touch": True,
    },
}
KINDS = ("Document", "Script", "Stylesheet")
"""The browser's kinds of requests whose bytes count."""
OF_ALL = (
    ("paint", "largest paint of all pages", "s", 1000),
    ("shift", "most layout shift of all pages", "", 1),
    *((kind, f"heaviest {kind.lower()} of all pages", "KB", 1000) for kind in KINDS),
)
"""A figure of the slowest or heaviest page: its measure, name, unit and scale."""
WATCHED = """
window.seen = { paint: 0, shift: 0, blocked: 0 };
const watch = (type, each) => new PerformanceObserver(list => list.getEntries().forEach(each))
  .observe({ type, buffered: true });
watch('largest-contentful-paint', one => { seen.paint = one.startTime; });
watch('layout-shift', one => { if (!one.hadRecentInput) seen.shift += one.value; });
watch('longtask', one => { seen.blocked += Math.max(0, one.duration - 50); });
"""


def measure(report: Report, address: str, cookies: Mapping[str, str], pages: Mapping[str, str]) -> None:  # fmt: skip
    chromium = shutil.which("chromium")
    if chromium is None:
        report.note("there is no chromium: nothing of the browser is measured")
        return
    from playwright.sync_api import sync_playwright

    options = {"args": ["--no-sandbox"] if os.getuid() == 0 else []}
    jar: list[Any] = [{"name": n, "value": v, "url": address} for n, v in cookies.items()]
    opened: list[dict[str, float]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, **options)
        for look, emulated in LOOKS.items():
            for name, path in pages.items():
                rounds = [_opened(browser, address + path, jar, emulated) for _ in range(ROUNDS)]
                opened.append(_middle(rounds))
                _tell(report, f"{look}, {name}", opened[-1])
        browser.close()
    for name, what, unit, scale in OF_ALL:
        report.figure(what, max(one.get(name, 0) for one in opened) / scale, unit)


def _middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    names = {name for one in rounds for name in one}
    return {name: statistics.median(one.get(name, 0) for one in rounds) for name in names}


def _tell(report: Report, what: str, took: dict[str, float]) -> None:
    report.figure(f"{what}: largest paint", took["paint"] / 1000, "s")
    report.figure(f"{what}: blocking", took["blocked"], "ms")
    told = ", ".join(f"{kind.lower()} {took.get(kind, 0) / 1000:.1f} KB" for kind in KINDS)
    report.note(f"{what}: {took['requests']:.0f} requests, {took['bytes'] / 1000:.0f} KB, {told}")


def _opened(browser: Browser, address: str, jar: list[Any], look: dict[str, Any]) -> dict[str, float]:  # fmt: skip
    """Open a page in a fresh profile and return what it took."""
    took: dict[str, float] = {"requests": 0, "bytes": 0}
    kinds: dict[str, str] = {}

    def came(told: dict[str, Any]) -> None:
        kinds[told["requestId"]] = told["type"]

    def ended(told: dict[str, Any]) -> None:
        kind, size = kinds.get(told["requestId"], "Other"), told["encodedDataLength"]
        took["requests"] += 1
        for name in ("bytes", kind):
            took[name] = took.get(name, 0) + size

    with browser.new_context(**look) as context:
        context.add_cookies(jar)
        page = context.new_page()
        page.add_init_script(WATCHED)
        protocol = context.new_cdp_session(page)
        protocol.on("Network.responseReceived", came)
        protocol.on("Network.loadingFinished", ended)
        protocol.send("Network.enable")
        protocol.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        page.goto(address)
        page.wait_for_load_state("load")
        page.wait_for_timeout(1_500)
        return took | page.evaluate("() => window.seen")
