"""The budgets: at most forty figures that somebody waits for, each with the most (or least) that it
may reach on two cores with 300,000 cards, 1,000,000 orders and 500,000 products.

`bench/BUDGETS.md` and the head of `bench/RESULTS.md` are written from this table. Any other figure
of a part has no goal.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_BUDGETS = 40


class Budget(NamedTuple):
    """`beside` names a figure of the same part and run: a ratio to a floor, or the time of a
    ratio.
    """

    who: str
    part: str
    what: str
    reach: float
    unit: str = "ms"
    beside: str = ""
    least: bool = False

    @property
    def goal(self) -> str:
        return f"at {'least' if self.least else 'most'} {self.reach:g} {self.unit}"

    def met(self, value: float) -> bool:
        return value >= self.reach if self.least else value <= self.reach


def said(value: float, unit: str) -> str:
    """A value with its unit: whole numbers without decimals, others with two."""
    number = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{number} {unit}".strip()


def pages(who: str, page: str, p50: float, p99: float, beside: str = "") -> tuple[Budget, Budget]:
    """The middle and the slow end of a page."""
    return (
        Budget(who, "pages", f"{page}: p50", p50, beside=beside),
        Budget(who, "pages", f"{page}: p99", p99),
    )


RULE, SHEET = "owner who opens a rule after the import", "seller who prints labels"
DEVELOPER = "developer who lands a change"
FIRST = "seller who sends a first inventory of 300,000 rows"
AGAIN = "seller whose agent syncs, 15 % of the prices changed"
SHOP = "1,000 shops of 10,000 cards on a cluster"
BUDGETS = (
    *pages("seller who opens Cards", "cards", 50, 110, "cards: beside its JSON"),
    *pages("seller who searches Cards", "cards, a search", 45, 100, "cards, a search: beside its JSON"),
    *pages("seller who scrolls Cards", "cards, rows of any place", 25, 70),
    *pages("seller who opens a card", "card", 40, 90, "card: beside its JSON"),
    *pages("seller who searches orders", "orders, a search", 45, 110, "orders, a search: beside its JSON"),
    Budget("seller who searches orders", "pages", "orders, a rare search: p50", 45),
    *pages("seller who opens an everyday page", "the slowest everyday page", 30, 100),
    Budget("member who opens a page after a restart", "pages", "first page after a start", 500),
    Budget("program that asks why a price is so", "reprice", "explanation with its receipt, over HTTP", 28),
    Budget(RULE, "first_looks", "rule page first opened after an import, with its effect", 1.0, "s",
           "rule page first opened / warm"),
    Budget("owner who types a rule's query", "pages", "typing in a rule's query: p50", 300),
    Budget("owner who chooses a preset", "first_looks", "presets, page", 0.8, "s",
           "a preview for each / presets"),
    Budget(SHEET, "first_looks", "200 labels", 1.0, "s", "200 codes with every mask / 200 labels"),
    Budget("seller who opens the price file", "first_looks", "price file page", 0.25, "s"),
    Budget("seller at a desktop", "pages", "desktop, cards: blocking", 200),
    Budget("seller with a phone", "pages", "phone, cards: blocking", 250),
    Budget("member who opens any page", "pages", "largest paint of all pages", 0.8, "s"),
    Budget("seller who approves a price", "pages", "approve to the changed row: p50", 120),
    Budget("seller who scrolls Cards", "pages", "scroll to any place: p50", 100),
    Budget("member who types into the palette", "pages", "anything found, first results: p99", 100),
    Budget(FIRST, "import_inventory", "first import / floor", 5, "x", "first import"),
    Budget(AGAIN, "import_inventory", "again with 15 % changed / floor", 2.5, "x", "again with 15 % changed"),
    Budget("seller who sends 50,000 orders", "orders", "applying 50,000 new orders / COPY of the rows' values",
           7, "x", "applying 50,000 new orders"),
    Budget("shop beside one that sends 60 requests at once", "crowd",
           "60 x anything: worst p99 of another's page / quiet", 3, "x"),
    Budget("agents", "heartbeat", "heartbeats a second / raw ASGI", 0.75, "x",
           "CPU of raw ASGI / CPU of a heartbeat", least=True),
    Budget("3,000 agents, for 30 minutes", "fleet", "heartbeat and poll, p99", 50),
    Budget("shop of five years", "old_shop", "the slowest of all: old / young", 1.2, "x"),
    Budget(SHOP, "distributed", "first import, cluster : one server", 1.6, "x"),
    Budget(SHOP, "distributed", "import again, cluster : one server", 1.6, "x"),
    Budget(SHOP, "distributed", "search, cluster : one server", 1.6, "x"),
    Budget(DEVELOPER, "suite", "make test", 8, "min"),
    Budget(DEVELOPER, "suite", ".ci/run", 20, "min"),
)  # fmt: skip
BY_NAME = {(one.part, one.what): one for one in BUDGETS}
