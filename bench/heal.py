"""`python bench/heal.py [--rounds 200]`: a repair from a page of 64,000 bytes, as a function and
over HTTP with one web process; and the worst of some hostile pages.

The page is a marketplace's pricing page with a table of cards; its export button got another id.
And the right, wrong and missed repairs of the corpus (tests/core/repairs_corpus/README.md), for the
half that the weights were tuned on, the half that was held out, and both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import ground
from cardsync.agents.limits import SNIPPET_BYTES
from cardsync.agents.repairs.propose_selector import LostElement, Proposal, propose
from ground import Client, Ground, Report

sys.path.append(str(ground.HERE.parent / "tests" / "core"))
sys.path.append(str(ground.HERE.parent / "tests"))
from repaired_pages import cases, counted, repaired

# The known facts of the element.
HOW = {
    "selector": "by the selector alone",
    "record": "with a record of the element",
    "described": "as the agent describes it",
}
LOST = LostElement("#export-filtered-csv", "export_inventory")
ROW = (
    '<tr class="card-row"><td><a href="/product/{n}">Card number {n}</a></td><td>Near Mint</td><td>'
    '<input type="text" name="price-{n}" value="1.25" class="price"></td><td><button class="btn'
    ' edit" data-id="{n}">Edit</button><button class="btn delete">Delete</button></td></tr>'
)
HOSTILE = (
    "<div>",
    "<b><p>",
    "<div onclick>Export",
    "<button>Export csv</button>",
    "<p id=x>export</p>",
)


def page() -> str:
    begin = (
        '<main id="pricing"><div class="toolbar"><button id="csv-export" class="btn">Export'
        ' Filtered CSV</button><button id="csv-import" class="btn">Import CSV</button></div><table>'
    )
    text, n = begin, 0
    while len(text) + len(ROW) + 20 < SNIPPET_BYTES:
        text, n = text + ROW.format(n=n), n + 1
    return (text + "</table></main>").ljust(SNIPPET_BYTES)


def median_ms(took: list[float]) -> float:
    return sorted(took)[len(took) // 2] * 1e3


def p99_ms(took: list[float]) -> float:
    return sorted(took)[len(took) * 99 // 100] * 1e3


def as_a_function(markup: str, rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        started = perf_counter()
        assert isinstance(propose(markup, LOST), Proposal)
        took.append(perf_counter() - started)
    return took


def over_http(made: Ground, markup: str, rounds: int) -> list[float]:
    seller, took = made.new_seller(), []
    client = Client(made.settings.bind, seller.api_key)
    for turn in range(rounds):
        asked = {
            "workflow": f"pricing {turn}", "step_name": LOST.step_name, "selector": LOST.selector,
            "page_url": "https://marketplace.invalid/pricing", "dom_snippet": markup,
        }  # fmt: skip
        body = json.dumps(asked).encode()
        started = perf_counter()
        status, _, answer = client.request(
            "POST", "/api/v1/workflow/heal", body, Content_Type="application/json"
        )
        took.append(perf_counter() - started)
        assert (status, json.loads(answer)["status"]) == (200, "proposed"), answer
    client.close()
    return took


def worst() -> float:
    took = []
    for part in HOSTILE:
        started = perf_counter()
        propose((part * SNIPPET_BYTES)[:SNIPPET_BYTES], LOST)
        took.append(perf_counter() - started)
    return max(took)


def corpus(report: Report) -> None:
    outcomes = [(case, repaired(case)) for case in cases()]
    report.note(f"corpus: {len({case.pair for case, _ in outcomes}):,} pairs of pages")
    for (half, way), part in sorted(counted(outcomes).items()):
        how = HOW[way]
        report.note(f"{half}, {how}: {part.cases:,} repairs, {part.told()}")
        if half == "all":
            report.figure(f"right repairs of the corpus, {how}", part.right * 100, "%")
        report.figure(f"wrong repairs of the corpus, {half}, {how}", part.wrong * 100, "%")


def measure(data: Path, rows: int, rounds: int) -> Report:
    report, markup = Report("Repairs of lost selectors"), page()
    corpus(report)
    alone = as_a_function(markup, rounds)
    with ground.ground(data, rows, catalogs=False) as made, ground.service(made, workers=1):
        asked = over_http(made, markup, rounds)
    report.note(f"worst of {len(HOSTILE)} hostile pages of the same size: {worst() * 1e3:,.0f} ms")
    report.figure("heal on a 64 KB snippet, as a function, p50", median_ms(alone), "ms")
    report.figure("heal on a 64 KB snippet, as a function, p99", p99_ms(alone), "ms")
    report.figure("heal on a 64 KB snippet, over HTTP, p50", median_ms(asked), "ms")
    report.figure("heal on a 64 KB snippet, over HTTP, p99", p99_ms(asked), "ms")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=200)
