"""After any sequence of uploads a seller's cards are those of a slow model in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import schedule
from builders import a_csv, a_row, read_csv

pytestmark = pytest.mark.day

CENT = Decimal("0.01")
LINES = {"Magic": "magic", "Pokemon": "pokemon"}


def competitive(row: Row) -> Decimal | None:
    """The preset as pricing.md words it: market, else low; minus 1 %; up to 1 % under a low price
    that stands above; never lower than now; at least a cent; whole cents.
    """
    reference = row.market or row.low
    if row.quantity == 0 or reference is None:
        return None
    wanted = (reference * Decimal("0.99")).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    if row.low is not None and row.low > wanted:
        under = (row.low * Decimal("0.99")).quantize(Decimal("0.0001"), ROUND_HALF_UP)
        wanted = max(wanted, under)
    lowest = max(row.price or CENT, CENT)
    cents = max(wanted.quantize(CENT, ROUND_HALF_UP), lowest.quantize(CENT, ROUND_CEILING))
    if row.price is not None and row.price >= CENT and abs(cents - row.price) < CENT:
        return row.price
    return cents


@dataclass(frozen=True)
class Row:
    id: int
    quantity: int
    price: Decimal | None
    market: Decimal | None
    low: Decimal | None

    @property
    def line(self) -> str:
        return "Magic" if self.id % 2 else "Pokemon"

    def cells(self) -> dict[str, str]:
        text = {
            name: "" if (value := getattr(self, name)) is None else str(value)
            for name in ("price", "market", "low")
        }
        return a_row(self.id, line=self.line, quantity=self.quantity, **text)

    @property
    def observed(self) -> tuple:
        return self.quantity, self.price, self.market, self.low


@dataclass(frozen=True)
class Card:
    row: Row
    target: Decimal | None
    gone: bool


@dataclass
class Shop:
    cards: dict[int, Card] = field(default_factory=dict)
    history: dict[int, list[tuple]] = field(default_factory=dict)

    def upload(self, rows: list[Row], named: str | None, *, confirmed: bool = False) -> str:
        came = {row.id: row for row in rows}
        occurring = {row.line for row in came.values()}
        active = [card.row for card in self.cards.values() if not card.gone]
        absent = [
            row
            for row in active
            if row.line in ({named} if named else occurring) and row.id not in came
        ]
        short = any(
            sum(row.line == line for row in active) >= 20
            and 2 * sum(row.line == line for row in absent)
            > sum(row.line == line for row in active)
            for line in LINES
        )
        held = short and not confirmed
        for row in came.values():
            self._observe(
                row, self._held_target(row) if held else competitive(row), gone=row.quantity == 0
            )
        if held:
            return "awaiting_review"
        for row in absent:
            if row.line not in occurring:
                continue
            self._observe(replace(row, quantity=0), None, gone=True)
        return "done"

    def _held_target(self, row: Row) -> Decimal | None:
        """Nothing is repriced; a target for a price that no longer is would be a new price too."""
        card = self.cards.get(row.id)
        return card.target if card and card.row.price == row.price else None

    def _observe(self, row: Row, target: Decimal | None, *, gone: bool) -> None:
        before = self.cards.get(row.id)
        if before and before.row.observed != row.observed:
            self.history.setdefault(row.id, []).append(before.row.observed)
        self.cards[row.id] = Card(row, target, gone)


prices = st.sampled_from(
    [None, "0.005", "0.01", "0.02", "0.25", "0.995", "1.00", "1.0050", "1.99", "20.00", "1234.5678"]
).map(lambda text: text and Decimal(text))


def rows_of(ids, quantities) -> st.SearchStrategy[list[Row]]:
    return st.tuples(
        *(
            st.builds(Row, st.just(n), st.sampled_from(quantities), prices, prices, prices)
            for n in ids
        )
    ).map(list)


def files_of(counts, quantities) -> st.SearchStrategy[list[Row]]:
    """Draw different ids from 1 to 56, now and then with repeated ones."""
    drawn = st.tuples(
        st.permutations(range(1, 57)), st.sampled_from(counts), st.sampled_from([0, 0, 1, 4])
    )
    return drawn.flatmap(
        lambda drawn: rows_of(drawn[0][: drawn[1]] + drawn[0][: drawn[2]], quantities)
    )


first = files_of([44, 50, 56], [1, 2])
files = files_of([2, 8, 18, 30, 44, 56], [0, 1, 2, 3, 4])
named = st.sampled_from([None, None, "Magic", "Pokemon"])
answers = st.sampled_from(["confirm", "discard", "leave"])
steps = st.tuples(
    st.tuples(first, st.none(), answers),
    st.tuples(files, named, answers),
    st.tuples(files, named, answers),
)


async def history_of(seller) -> dict[int, list[tuple]]:
    kept = await seller.service.sql(
        seller.id,
        "SELECT c.marketplace_id, o.quantity, o.price, o.market, o.low FROM price_observation o"
        " JOIN card c ON c.seller_id = o.seller_id AND c.id = o.card_id WHERE o.seller_id = :id"
        " ORDER BY o.observed_at",
        id=seller.id,
    )
    history: dict[int, list[tuple]] = {}
    for row in kept:
        history.setdefault(row["marketplace_id"], []).append(tuple(row.values())[1:])
    return history


@schedule.deeper
@settings(
    max_examples=schedule.examples(2, 8),
    deadline=None,
    derandomize=True,
    database=None,
    # Shrinking would upload for minutes.
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(steps)
async def test_any_sequence_of_uploads_ends_in_what_a_plain_model_says(a_seller, steps):
    # A read_only seller looks at the file anyway: the breaker, which has its own tests, stays out
    # of it.
    seller, shop = await a_seller(sync_mode="read_only"), Shop()
    for file, named, answer in steps:
        headers = {"X-Product-Line": LINES[named]} if named else {}
        report = await seller.import_csv(a_csv(*(row.cells() for row in file)), **headers)
        assert report["state"] == shop.upload(file, named)
        assert report["duplicates"] == len(file) - len({row.id for row in file})
        if report["state"] == "awaiting_review" and answer != "leave":
            assert (
                await seller.post(f"/api/v1/uploads/{report['id']}/{answer}")
            ).status_code == 200
            await seller.service.run_jobs()
            if answer == "confirm":
                assert (
                    shop.upload(file, named, confirmed=True)
                    == (await seller.report(report["id"]))["state"]
                )
        held = report["state"] == "awaiting_review" and answer == "leave"
    stored = await seller.cards()
    expected = {
        id: (card.row.observed, card.gone, None if card.gone else card.target)
        for id, card in sorted(shop.cards.items())
    }
    assert {
        card["marketplace_id"]: (
            (card["quantity"], card["price"], card["market"], card["low"]),
            card["gone"],
            None if card["gone"] else card["target_price"],
        )
        for card in stored
    } == expected
    assert await history_of(seller) == shop.history
    exported = {
        int(row["TCGplayer Id"]): Decimal(row["TCG Marketplace Price"])
        for row in read_csv((await seller.export()).content)
    }
    wanted = {
        id: card.target
        for id, card in shop.cards.items()
        if not card.gone and card.target is not None and card.target != card.row.price
    }
    assert exported == ({} if held else wanted)
