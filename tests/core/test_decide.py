"""Decisions about changes of prices: a table of all rules, and properties."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access.caller import Identity
from cardsync.platform.money import percent
from cardsync.prices.loss import loss_limits as loss
from cardsync.prices.loss.decide import (
    DEFAULTS,
    LIFTED,
    LIMITS,
    PRICINGS,
    By,
    answer,
    broken_limit,
    confirmation_of,
    credential_of,
    decide,
    denied,
    stops,
)
from cardsync.prices.loss.loss_limits import Sums
from cardsync.prices.loss.risk import Size, risk_of

RISKS = ("low", "medium", "high", "critical")
MODES = ("deny", "always_ask", "ask_for_mutations", "auto_low_risk", "auto_unless_critical")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("deny", ("refuse", "refuse", "refuse", "refuse")),
        ("always_ask", ("ask", "ask", "ask", "ask")),
        ("ask_for_mutations", ("ask", "ask", "ask", "ask")),
        ("auto_low_risk", ("apply", "ask", "ask", "ask")),
        ("auto_unless_critical", ("apply", "apply", "apply", "ask")),
    ],
)
def test_each_mode_answers_each_risk(mode, expected):
    assert tuple(answer(mode, risk, changes=True) for risk in RISKS) == expected


def test_a_plan_that_changes_nothing_asks_only_where_everything_asks():
    found = {mode: answer(mode, "low", changes=False) for mode in MODES}
    assert found == {
        "deny": "refuse",
        "always_ask": "ask",
        "ask_for_mutations": "apply",
        "auto_low_risk": "apply",
        "auto_unless_critical": "apply",
    }


@pytest.mark.parametrize(
    ("shown", "credential"), [("key", "key"), ("token", "token"), ("session", None)]
)
def test_a_credential_is_known_by_its_caller(shown, credential):
    caller = SimpleNamespace(identity=Identity(1, shown, 7))
    assert credential_of(caller) == credential


def test_a_key_does_what_is_of_low_risk_and_a_token_asks():
    expected = {"key": "apply", "token": "ask"}
    found = {name: answer(mode, "low", changes=True) for name, mode in DEFAULTS.items()}
    assert found == expected


BROKEN = {
    "price_of_market": Size(under_market=1, first_under_market=7),
    "card_hour": Size(sums=Sums(hour_cards=1, hour_first=7)),
    "card_day": Size(sums=Sums(day_cards=1, day_first=7)),
    "hour_listed_value": Size(sums=Sums(hour_before=10_000, hour_fallen=2_001)),
    "loss_budget": Size(sums=Sums(week_fallen=501), shop_value=10_000),
}


@pytest.mark.parametrize(
    ("limit", "span", "counted", "named"),
    [
        ("price_of_market", "write", "each card", "under 1% of the market price"),
        ("card_hour", "hour", "each card", percent(loss.HOUR_CARD_BP)),
        ("card_day", "day", "each card", percent(loss.DAY_CARD_BP)),
        ("hour_listed_value", "hour", "the cards touched", percent(loss.HOUR_TOUCHED_BP)),
        ("loss_budget", "week", "the shop", "the setting Loss budget (loss_budget)"),
    ],
)
def test_each_limit_says_what_it_is_and_who_lifts_it(limit, span, counted, named):
    rule = next(rule for rule in LIMITS if rule.limit == limit)
    assert (rule.span, rule.counted) == (span, counted)
    assert ("the setting" in rule.sentence(BROKEN[limit])) == ("setting" in rule.lifted_by)
    broken = broken_limit(BROKEN[limit])
    assert broken is not None
    assert broken.limit == limit
    assert named in broken.error
    assert broken.error.endswith(LIFTED)


def test_the_table_has_all_the_limits_that_are_summed_and_no_other():
    assert [rule.limit for rule in LIMITS] == [*BROKEN]
    assert [rule.span for rule in LIMITS if rule.limit.startswith("card_")] == [
        span for span, _ in loss.SPANS
    ]
    assert all(
        [rule.limit for rule in LIMITS if rule.breaks(BROKEN[one])] == [one] for one in BROKEN
    )


def test_the_documents_name_each_limit():
    told = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()
    assert [rule.limit for rule in LIMITS if f"| `{rule.limit}` |" not in told] == []


FAR = BROKEN["card_hour"]
HALVED = Size(deepest_bp=5_001)
LARGE = Size(cards=100, moved_bp=2_001)


@pytest.mark.parametrize(
    ("size", "by", "verdict", "limit"),
    [
        # A member is bound by no limit; it confirms a large change, unless it has.
        (FAR, By(), "apply", None),
        (HALVED, By(), "ask", None),
        (HALVED, By(limited=False), "apply", None),
        # A single write of a key or a token knows the limits alone.
        (Size(), By("key"), "apply", None),
        (HALVED, By("token"), "apply", None),
        (LARGE, By("key"), "apply", None),
        (FAR, By("key"), "refuse", "card_hour"),
        (FAR, By("key", limited=False), "apply", None),
        # A mode asks for the risk, and a limit says why before it does.
        (Size(), By("token", {"pricing.pins": "ask_for_mutations"}), "ask", None),
        (Size(changes=False), By("token", {"pricing.pins": "ask_for_mutations"}), "apply", None),
        (FAR, By("token", {"pricing.pins": "always_ask"}), "ask", "card_hour"),
        (FAR, By("key", {"pricing.pins": "auto_unless_critical"}), "refuse", "card_hour"),
        (LARGE, By("key", {"pricing.pins": "auto_low_risk"}), "ask", None),
        (LARGE, By("key", {"pricing.pins": "auto_low_risk"}, trusted=True), "apply", None),
        (LARGE, By("key", {"pricing.pins": "always_ask"}, trusted=True), "ask", None),
        # The strictest of several kinds of action decides.
        (Size(), By("key", {"a": "auto_low_risk", "b": "always_ask"}), "ask", None),
        (Size(), By("key", {"a": "always_ask", "b": "deny"}), "refuse", "key.b"),
    ],
)
def test_a_change_applies_asks_or_is_refused(size, by, verdict, limit):
    assert decide(size, by)[:2] == (verdict, limit)


sizes = st.sampled_from([Size(), HALVED, LARGE, *BROKEN.values()])
modes = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(MODES))
credentials = st.sampled_from(["key", "token"])


@given(sizes, credentials, modes, st.booleans(), st.booleans())
def test_whatever_is_not_applied_says_why(size, credential, given_modes, limited, trusted):
    by = By(credential, given_modes, limited, trusted)
    verdict = decide(size, by)
    if verdict.answer == "apply":
        assert broken_limit(size) is None or not limited
        assert verdict.limit is None
    if verdict.answer == "refuse":
        assert verdict.error
    assert (denied(by) is None) == ("deny" not in given_modes.values())


@given(sizes, credentials, modes, st.sampled_from(MODES))
def test_a_further_kind_of_action_makes_no_change_easier(size, credential, given_modes, mode):
    order = ("apply", "ask", "refuse")
    few = decide(size, By(credential, given_modes))
    more = decide(size, By(credential, given_modes | {"d": mode}))
    # A limit refuses where nothing asks; a member's click lifts both.
    assert min(order.index(more.answer), 1) >= min(order.index(few.answer), 1)


@given(sizes, credentials, modes, st.booleans())
def test_a_change_that_is_trusted_or_free_is_made_no_harder(size, credential, given_modes, limited):
    strict = decide(size, By(credential, given_modes))
    free = decide(size, By(credential, given_modes, limited=limited, trusted=True))
    assert free.answer == "apply" or strict.answer != "apply"


@given(sizes, st.sampled_from(MODES))
def test_a_mode_alone_decides_within_the_limits(size, mode):
    found = decide(size, By("key", {"a": mode}, limited=False)).answer
    assert found == answer(mode, risk_of(size), changes=size.changes)


@pytest.mark.parametrize(
    ("surprise", "kept_mode", "review_mode", "confirmed"),
    [
        ("short_inventory", True, True, False),
        ("large_moves", True, False, False),
        ("moved_by_keys", True, False, True),
    ],
)
def test_a_surprise_stops_a_pricing(surprise, kept_mode, review_mode, confirmed):
    assert stops(surprise) is kept_mode
    assert stops(surprise, review_mode=True) is review_mode
    assert stops(surprise, confirmed=True) is confirmed
    assert len(PRICINGS) == 3


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(under_market=1, first_under_market=7), "card 7 would be priced under 1%"),
        (
            Size(under_market=2, first_under_market=7),
            "2 cards, card 7 among them, would be priced under 1%",
        ),
        (Size(sums=Sums(hour_cards=1, hour_first=7)), "card 7 would have moved by more than 20%"),
        (
            Size(sums=Sums(day_cards=1_200, day_first=7)),
            "1,200 cards, card 7 among them, would have moved by more than 30%",
        ),
    ],
)
def test_a_refusal_counts_cards_as_a_person_does(size, words):
    broken = broken_limit(size)
    assert broken is not None
    assert broken.error.startswith(words)


@pytest.mark.parametrize(
    ("cards", "words"),
    [
        (1, "1 card would change price, by -60%"),
        (2, "2 cards would change price, one of them by -60%"),
    ],
)
def test_so_does_a_confirmation(cards, words):
    asked = confirmation_of(Size(cards=cards, deepest_bp=6_000))
    assert str(asked.body()["error"]).startswith(words)
