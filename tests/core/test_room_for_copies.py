"""The copies of one card that an offer may still buy: whatever the engine buys by what the shop holds
has room, and what another offer took meanwhile has none.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cardsync.buying.engine.buy_rules import BuyRule, Step
from cardsync.buying.engine.value_lines import value_lines
from cardsync.buying.engine.wanted_lines import LineFacts, WantedLine
from cardsync.buying.rules.room_for_copies import BoughtCopies, over_limit

STEPS = st.lists(st.integers(1, 9), unique=True, max_size=3).map(
    lambda starts: tuple(Step(start, 1_000 * (at + 1)) for at, start in enumerate(sorted(starts)))
)
RULES = st.builds(
    lambda id, most, steps: BuyRule(id, f"R{id}", id, most_copies=most, stock_steps=steps),
    st.integers(1, 2),
    st.none() | st.integers(0, 9),
    STEPS,
)


def bought(rules, wanted, held):
    """The engine buys copies of one card by two rules: return the copies by price, and the lines."""
    lines = [
        (WantedLine(at, 1, "NM", "Normal", language, copies), rule)
        for at, (language, copies, rule) in enumerate(wanted)
    ]
    facts = [(line, LineFacts(rule, market=100_000, in_stock=held)) for line, rule in lines]
    valued = value_lines(facts, rules.values(), {})
    asked = [
        BoughtCopies(rule, WantedLine(at, 1, "NM", "Normal", line.language, part.copies), held)
        for at, ((line, rule), one) in enumerate(zip(lines, valued, strict=True))
        for part in one.bought
    ]
    return [one.bought for one in valued], asked


@given(
    st.lists(RULES, max_size=2),
    st.lists(
        st.tuples(st.sampled_from(["en", "de"]), st.integers(1, 5), st.integers(1, 2)), max_size=3
    ),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_an_offer_has_room_where_the_engine_would_buy_it_again(rules, wanted, held, more):
    known = {rule.id: rule for rule in rules}
    wanted = [line for line in wanted if line[2] in known]
    before, asked = bought(known, wanted, held)
    assert over_limit(asked, known, held) is None
    if over_limit(asked, known, held + more) is None:
        kept = [
            (line[0], sum(part.copies for part in parts), line[2])
            for line, parts in zip(wanted, before, strict=True)
            if parts
        ]
        after, _ = bought(known, kept, held + more)
        assert after == [parts for parts in before if parts]
