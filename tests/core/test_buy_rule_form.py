"""A buy rule that is opened as a form and saved is the same rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cardsync.buying.engine.buy_rules import BulkPrice, BuyRule
from cardsync.buying.rules.buy_rule_form import body_of, form_of
from cardsync.buying.rules.buy_rule_json import buy_rule_body, columns_of, read_buy_rule
from cardsync.buying.rules.models import StoredBuyRule
from cardsync.clock import now

WORDS = st.text("abc -\u00e9", max_size=9).map(lambda text: " ".join(text.split()))
RARITIES = st.one_of(WORDS, st.just("Rare, old"))
AMOUNTS = st.integers(0, 99_999).map(lambda cents: cents * 100)
BULK = st.lists(
    st.builds(BulkPrice, AMOUNTS, AMOUNTS, RARITIES, WORDS),
    max_size=4,
    unique_by=lambda one: (one.rarity.casefold(), one.game.casefold()),
)


def reopened(rule):
    row = StoredBuyRule(id=1, created_at=now(), updated_at=now(), **columns_of(rule))
    return read_buy_rule(body_of(form_of(buy_rule_body(row, [])), {}), BuyRule(1, "", 1))


@given(bulk=BULK)
def test_bulk_prices_outlive_opening_and_saving(bulk):
    rule = BuyRule(id=1, name="Bulk", priority=1, bulk=tuple(bulk))
    assert reopened(rule).bulk == rule.bulk
