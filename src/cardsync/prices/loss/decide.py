"""Decides whether a change of prices is applied, needs a member's approval or is refused. Pure.

`LIMITS` and `CONFIRMED` are the rules for changes, `PRICINGS` the rules for uploads and runs. All
code that changes prices measures the effect first and decides only by this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.money import dollars, percent, to_units
from cardsync.prices.loss.loss_limits import (
    BUDGET_BP,
    DAY_CARD_BP,
    HOUR_CARD_BP,
    HOUR_TOUCHED_BP,
    WHOLE_BP,
)
from cardsync.prices.loss.risk import Risk, Size, risk_of

Mode = Literal["deny", "always_ask", "ask_for_mutations", "auto_low_risk", "auto_unless_critical"]
Credential = Literal["key", "token"]
Answer = Literal["apply", "ask", "refuse"]
Limit = Literal[
    "price_of_market", "card_hour", "card_day", "hour_listed_value", "loss_budget", "permission"
]
Span = Literal["write", "hour", "day", "week"]
Counted = Literal["each card", "the cards touched", "the shop"]
Lifts = Literal["a click", "a click or the setting"]
DEFAULTS: Final[dict[Credential, Mode]] = {"key": "auto_low_risk", "token": "ask_for_mutations"}
_STRICTEST: Final[tuple[Answer, ...]] = ("refuse", "ask", "apply")
_ALWAYS: Final[dict[Mode, Answer]] = {"deny": "refuse", "always_ask": "ask"}
# The risks that a mode applies without approval; all other risks need approval.
_PASSING: Final[dict[Mode, tuple[Risk, ...]]] = {
    "auto_low_risk": ("low",),
    "auto_unless_critical": ("low", "medium", "high"),
}


def answer(mode: Mode, risk: Risk, *, changes: bool) -> Answer:
    """Return the answer for one kind of action. A plan that would change nothing needs no approval
    under `ask_for_mutations`, but needs it under `always_ask`.
    """
    if mode in _ALWAYS:
        return _ALWAYS[mode]
    if mode == "ask_for_mutations":
        return "ask" if changes else "apply"
    return "apply" if risk in _PASSING[mode] else "ask"


def credential_of(caller: Caller) -> Credential | None:
    """Return the kind of the caller's credential, or None for a member's session, which needs no
    permission. A phone's link has the permissions of a token.
    """
    credential = caller.identity.credential
    if credential == "session":
        return None
    return "key" if credential == "key" else "token"


class By(NamedTuple):
    """A caller who changes prices: a member, if there is no credential. `modes` has the mode of
    each kind of action in the change; it is empty if only the limits apply. `limited`: the loss
    limits apply to credentials, and members must confirm large changes. `trusted`: the risk counts
    as low.
    """

    credential: Credential | None = None
    modes: Mapping[str, Mode] = {}
    limited: bool = True
    trusted: bool = False


class Verdict(NamedTuple):
    """The answer to a change. `limit` names the broken limit, and `error` is a sentence with the
    way to lift it.
    """

    answer: Answer
    limit: str | None = None
    error: str | None = None


class Rule(NamedTuple):
    """A limit, its time span, the cards that it counts, and who can lift it. A change that exactly
    reaches a limit does not break it.
    """

    limit: Limit
    span: Span
    counted: Counted
    lifted_by: Lifts
    breaks: Callable[[Size], bool]
    sentence: Callable[[Size], str]

    def of(self, size: Size) -> Verdict:
        return Verdict("ask", self.limit, f"{self.sentence(size)}; {LIFTED}")


# The last sentence of every refusal: how to lift the limits.
LIFTED: Final = (
    "an owner's click at confirm_url makes this change all the same, and a key that is a script of"
    " the shop's own is freed by My own script on the page Settings, Keys"
)


def _named(cards: int, first: int | None) -> str:
    """Return a phrase with the number of cards and the id of the first one."""
    return f"card {first}" if cards == 1 else f"{cards:,} cards, card {first} among them,"


def _moved(cards: int, first: int | None, words: str) -> str:
    return (
        f"{_named(cards, first)} would have moved by more than {words} without a member's approval:"
        " change these prices by less"
    )


def budget_of(own: int | None, listed: int) -> int:
    """Return the loss that the shop allows within a week: its own budget, or a share of its listed
    value.
    """
    return listed * BUDGET_BP // WHOLE_BP if own is None else own


def _budget(size: Size) -> int:
    return budget_of(size.loss_budget, size.shop_value)


LIMITS: Final[Sequence[Rule]] = (
    Rule(
        "price_of_market",
        "write",
        "each card",
        "a click",
        lambda size: size.under_market > 0,
        lambda size: (
            f"{_named(size.under_market, size.first_under_market)} would be priced under 1% of the"
            " market price: raise these prices"
        ),
    ),
    Rule(
        "card_hour",
        "hour",
        "each card",
        "a click",
        lambda size: size.sums.hour_cards > 0,
        lambda size: _moved(
            size.sums.hour_cards,
            size.sums.hour_first,
            f"{percent(HOUR_CARD_BP)} within an hour",
        ),
    ),
    Rule(
        "card_day",
        "day",
        "each card",
        "a click",
        lambda size: size.sums.day_cards > 0,
        lambda size: _moved(
            size.sums.day_cards, size.sums.day_first, f"{percent(DAY_CARD_BP)} within a day"
        ),
    ),
    Rule(
        "hour_listed_value",
        "hour",
        "the cards touched",
        "a click",
        lambda size: size.sums.hour_fallen * WHOLE_BP > size.sums.hour_before * HOUR_TOUCHED_BP,
        lambda size: (
            "the listed value of these cards would have fallen from"
            f" {dollars(size.sums.hour_before)} by {dollars(size.sums.hour_fallen)}, by more than"
            f" {percent(HOUR_TOUCHED_BP)}, within an hour: lower the prices by less"
        ),
    ),
    Rule(
        "loss_budget",
        "week",
        "the shop",
        "a click or the setting",
        lambda size: size.sums.week_fallen > _budget(size),
        lambda size: (
            f"the shop's listed value would have fallen by {dollars(size.sums.week_fallen)} within"
            f" a week without a member's approval; the loss budget is {dollars(_budget(size))}:"
            " lower the prices by less, or let an owner raise the setting Loss budget (loss_budget)"
        ),
    ),
)
ASKS: Final = Verdict(
    "ask",
    "permission",
    "the owner wants to approve what this assistant changes: ask for a click at confirm_url, or for"
    " another mode on the page Settings, Assistants",
)
# A promotion that lowers the prices of at least this many cards, or the listed value by at least
# this amount, needs a confirmation.
_PROMOTED_CARDS: Final = 100
_PROMOTED_VALUE: Final = to_units(Decimal(500))
_HALF_BP: Final = 5_000
_SHOP_BP: Final = 2_000


def _promotes_much(size: Size) -> bool:
    falls = max(fall.by for fall in size.falls)
    much = size.cards >= _PROMOTED_CARDS or falls >= _PROMOTED_VALUE
    return size.promotes and falls > 0 and much


CONFIRMED: Final[Sequence[Callable[[Size], bool]]] = (
    lambda size: size.deepest_bp > _HALF_BP,
    lambda size: any(fall.by * WHOLE_BP > fall.whole * _SHOP_BP for fall in size.falls),
    _promotes_much,
)
"""Tests for changes that a member must confirm: a card falls by more than half, the shop's value
falls by more than a fifth, or the change is a large promotion.
"""


def decide(size: Size, by: By) -> Verdict:
    """Return the verdict on a change of this size by this caller."""
    if by.credential is None:
        asks = by.limited and any(holds(size) for holds in CONFIRMED)
        return Verdict("ask" if asks else "apply")
    if refused := denied(by):
        return refused
    broken = broken_limit(size) if by.limited else None
    risk = "low" if by.trusted else risk_of(size)
    found = {answer(mode, risk, changes=size.changes) for mode in by.modes.values()}
    strictest: Answer = next((one for one in _STRICTEST if one in found), "apply")
    if broken is None:
        return Verdict(strictest)
    return broken if strictest == "ask" else broken._replace(answer="refuse")


def denied(by: By) -> Verdict | None:
    """Return the refusal of a change with a kind of action that the owner denies to the
    credential.
    """
    kinds = [kind for kind, mode in by.modes.items() if mode == "deny"]
    if not kinds:
        return None
    who = "an assistant" if by.credential == "token" else "a key"
    return Verdict(
        "refuse",
        f"{by.credential}.{kinds[0]}",
        f"the owner does not let {who} do {', '.join(kinds)}: ask the owner to change that in the"
        " assistant settings, or to do it themselves",
    )


def broken_limit(size: Size) -> Verdict | None:
    """Return the verdict of the first limit that the change breaks, which a member's click
    lifts.
    """
    return next((rule.of(size) for rule in LIMITS if rule.breaks(size)), None)


def confirmation_of(size: Size) -> errors.ConfirmationNeeded:
    """Return the error that requires a member's confirmation, with the figures of the change."""
    fall = max(size.falls, key=lambda fall: (fall.by * WHOLE_BP // (fall.whole or 1), fall.by))
    cards = f"{size.cards:,} cards would change price, one of them"
    if size.cards == 1:
        cards = "1 card would change price,"
    return errors.ConfirmationNeeded(
        f"{cards} by -{percent(size.deepest_bp)}, and the listed value would fall by"
        f" {dollars(fall.by)} of {dollars(fall.whole)}: confirm this change if you mean it",
        cards_affected=size.cards,
        # A promotion that begins later changes no price today, so its later fall is reported.
        listed_value_change=dollars(-fall.by if size.promotes else size.after - size.before),
        deepest_fall_bp=size.deepest_bp,
    )


Surprise = Literal["short_inventory", "large_moves", "moved_by_keys"]


class Pricing(NamedTuple):
    """Whether a surprise also stops a pricing in Review Mode, in which the owner approves every
    price file, and whether a confirmation lets the pricing continue.
    """

    in_review_mode: bool
    confirmed: bool


PRICINGS: Final[Mapping[Surprise, Pricing]] = {
    "short_inventory": Pricing(in_review_mode=True, confirmed=True),
    # The breaker found the large moves.
    "large_moves": Pricing(in_review_mode=False, confirmed=True),
    # The confirmation may be by a key, which must not lift the limits on keys' changes.
    "moved_by_keys": Pricing(in_review_mode=False, confirmed=False),
}


def stops(surprise: Surprise, *, review_mode: bool = False, confirmed: bool = False) -> bool:
    """Return whether an upload or a run with this surprise waits for the owner."""
    rule = PRICINGS[surprise]
    return not ((review_mode and not rule.in_review_mode) or (confirmed and rule.confirmed))
