"""The rules as they were before keys changed them: what a member changed later stays."""

import polars as pl
import pytest

from cardsync.pricing.engine.rules import Rule
from cardsync.pricing.inputs.rules_before_keys import Change, moved_by_keys, undone

OLD, NEW = Rule(1, "R", 1, adjust_bp=0), Rule(1, "R", 1, adjust_bp=-9000)
IMAGE = {
    "id": 1,
    "name": "R",
    "priority": 1,
    "enabled": True,
    "state": "draft",
    "preset": None,
    "query": "",
    "settings": {"adjust_bp": 0},
    "created_at": "2026-11-01T00:00:00Z",
}
BY_KEY, BY_MEMBER = (Change(by, {"1": IMAGE}) for by in (False, True))


@pytest.mark.parametrize(
    ("rules", "changes", "then"),
    [
        ([NEW], [], None),
        ([NEW], [BY_MEMBER], None),
        ([NEW], [BY_KEY], [OLD]),
        # The newest is first: a member looked at the rule after the key.
        ([NEW], [BY_MEMBER, BY_KEY], None),
        ([NEW], [BY_KEY, BY_MEMBER], [OLD]),
        ([NEW], [Change(False, {"1": None})], []),
        ([], [BY_KEY], [OLD]),
        # Of two changes by keys the older one's image is the price's.
        ([NEW], [Change(False, {"1": IMAGE | {"name": "Later"}}), BY_KEY], [OLD]),
    ],
)
def test_what_keys_changed_is_undone(rules, changes, then):
    assert undone(rules, changes) == then


def priced(target, current=100_000):
    schema = dict.fromkeys(("marketplace_id", "target", "current_price"), pl.Int64)
    return pl.DataFrame([(1, target, current)], schema=schema, orient="row")


@pytest.mark.parametrize(
    ("now", "then", "far"),
    [
        (100_000, 100_000, False),
        (67_000, 100_000, False),
        (66_000, 100_000, True),
        (134_000, 100_000, True),
        (None, 100_000, False),
        (50_000, None, True),
        # A card that never costs a dollar is bound by the other limits.
        (100, 9_000, False),
    ],
)
def test_a_card_is_far_from_what_earlier_rules_ask(now, then, far):
    assert moved_by_keys(priced(now), priced(then)) is far
