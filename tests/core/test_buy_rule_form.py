"""A buy rule that is opened as a form and saved is the same rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.buying.engine.buy_rules import (
    GRADES,
    Band,
    BulkPrice,
    BuyRule,
    ListStep,
    Step,
)
from cardsync.buying.rules.buy_rule_form import (
    TABLES,
    TEXTS,
    RuleForm,
    body_of,
    form_of,
    read_form,
)
from cardsync.buying.rules.buy_rule_json import read_buy_rule
from cardsync.platform import errors
from cardsync.platform.declared_fields import to_json

WORDS = st.text("abc -,\u00e9", max_size=9).map(lambda text: " ".join(text.split()))
AMOUNTS = st.integers(0, 99_999).map(lambda cents: cents * 100)
SHARES = st.integers(1, 10_000)
BULK = st.lists(
    st.builds(BulkPrice, AMOUNTS, AMOUNTS, WORDS, WORDS),
    max_size=4,
    unique_by=lambda one: (one.rarity.casefold(), one.game.casefold()),
)
BANDS = st.lists(
    st.builds(Band, AMOUNTS, SHARES, SHARES).filter(lambda one: one.start),
    max_size=4,
    unique_by=lambda one: one.start,
)
STARTS = st.lists(st.integers(0, 999), max_size=3, unique=True).map(sorted)
STEPS = st.tuples(STARTS, st.lists(SHARES, min_size=3, max_size=3).map(sorted)).map(
    lambda parts: [Step(start, less) for start, less in zip(*parts, strict=False)]
)
LISTS = st.lists(
    st.builds(ListStep, st.integers(1, 3), st.integers(-9_000, 9_000)),
    max_size=3,
    unique_by=lambda one: one.list_id,
)
NAMES = {1: "Wanted", 2: "Never buy", 3: "Hot, now"}


def sent(form: RuleForm) -> RuleForm:
    """Send a form as a browser does, with the blank row at each table's end."""
    fields = {name: [text] for name, text in form.texts.items()}
    for table, cells in TABLES.items():
        for row in [*form.rows[table], dict.fromkeys(cells, "")]:
            for cell in cells:
                fields.setdefault(f"{table}.{cell}", []).append(row[cell])
    return read_form(lambda name: fields[name][-1], lambda name: fields.get(name, []))


def reopened(rule):
    form = sent(form_of(to_json(rule)))
    return read_buy_rule(body_of(form, {name: id for id, name in NAMES.items()}), BuyRule(1, "", 1))


@given(bulk=BULK, bands=BANDS, stock=STEPS, days=STEPS, lists=LISTS)
def test_every_table_outlives_opening_and_saving(bulk, bands, stock, days, lists):
    named = [ListStep(one.list_id, one.change_bp, NAMES[one.list_id]) for one in lists]
    in_order = [Band(0, 5_000, 6_000), *sorted(bands, key=lambda one: one.start)]
    rule = BuyRule(
        id=1,
        name="Bulk",
        priority=1,
        bulk=tuple(bulk),
        bands=tuple(in_order),
        stock_steps=tuple(stock),
        days_steps=tuple(days),
        lists=tuple(named),
    )
    again = reopened(rule)
    for table in TABLES:
        assert getattr(again, table) == getattr(rule, table), table


BLANK = RuleForm(dict.fromkeys(TEXTS, "") | {"base": "market"}, {table: [] for table in TABLES})


@pytest.mark.parametrize(
    ("table", "row", "said"),
    [
        ("bands", {"from": "5", "cash": "often", "credit": "60%"}, "Tier 1: cash: 'often'"),
        ("stock_steps", {"from": "many", "less": "10%"}, "Copies in stock 1: enter a whole"),
        ("days_steps", {"from": "", "less": "10%"}, "Days to sell 1: enter a whole"),
        ("lists", {"change": "20", "way": "more", "list": "Gone"}, "List 1: there is no list"),
    ],
)
def test_a_row_that_can_not_be_read_is_named(table, row, said):
    form = RuleForm(BLANK.texts, BLANK.rows | {table: [row]})
    with pytest.raises(errors.InvalidRule, match=said):
        body_of(form, {"Wanted": 1})


@pytest.mark.parametrize(("field", "text"), [("most_copies", "x"), ("priority", "-1")])
def test_a_field_that_is_no_number_is_named_as_the_page_names_it(field, text):
    with pytest.raises(errors.InvalidRule, match=r"^(Max copies|Priority): enter a whole number"):
        body_of(RuleForm(BLANK.texts | {field: text}, BLANK.rows), {})


def test_amounts_and_percentages_are_read_as_people_type_them():
    texts = BLANK.texts | {"bulk_below": "$0.50", "offer_cash": "$1,500", "grade_LP": "85 %"}
    rows = BLANK.rows | {"bands": [{"from": "$10.00", "cash": "50", "credit": "62.5 %"}]}
    body = body_of(RuleForm(texts, rows), {})
    assert body["bulk_below"] == "0.50"
    assert body["budget"]["offer_cash"] == "1500"
    assert body["bands"] == [{"from": "10.00", "cash_bp": 5_000, "credit_bp": 6_250}]
    assert body["conditions"] == {"LP": 8_500}
    assert set(body["conditions"]) <= set(GRADES)
