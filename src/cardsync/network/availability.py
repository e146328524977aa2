"""Answers `POST /api/discovery/availability`: for each reference, the printing that it means with
the network's offers, or a list of candidates.

One statement finds the printings, and a second statement their offers. If a name matches nothing, a
third statement looks it up by words that differ in one or two letters. The printings that it finds
are only candidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from rapidfuzz import fuzz
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.product_lines import NAMES
from cardsync.network.answers import Answers, Availability, look_up
from cardsync.network.reference import CardReference, Reference, comparable, references
from cardsync.network.resolve import Printing, Resolved, resolve


class Answer(NamedTuple):
    """The answer to one reference. `available` is None unless the printing is certain."""

    asked: CardReference
    resolved: Resolved
    available: Availability | None
    nearby: list[Printing]


async def find(
    session: AsyncSession,
    caller: Caller,
    body: object,
    now: datetime,
) -> tuple[str, list[Answer]]:
    """Return the game and the answers in the order of the references.

    Raises InvalidPayload, NameTooShort, TooManyReferences.
    """
    game, cards = references(body, Reference)
    asked = comparable(cards)
    if game not in NAMES:
        return game, [Answer(one, Resolved([], 0, None), None, []) for one in asked]
    resolved = await resolve(session, game, asked, now)
    unknown = {at: asked[at].front or asked[at] for at, one in enumerate(resolved) if not one.total}
    answers = await look_up(
        session,
        caller.seller_id,
        sorted({one.meant for one in resolved if one.meant is not None}),
        {word for one in unknown.values() for word in one.words},
        now,
    )
    for at, found in (await _mistyped(session, game, unknown, answers, now)).items():
        resolved[at] = found
    return game, [_answer(one, found, answers) for one, found in zip(asked, resolved, strict=True)]


def missed(answers: Iterable[Answer]) -> list[int]:
    """Return the certain printings that no exposed seller offers."""
    return [
        answer.resolved.meant
        for answer in answers
        if answer.resolved.meant is not None
        and answer.available is not None
        and answer.available.least is None
    ]


def _answer(asked: CardReference, found: Resolved, answers: Answers) -> Answer:
    if found.meant is None:
        return Answer(asked, found, None, [])
    available = answers.available[found.meant]
    return Answer(asked, found, available, answers.nearby.get(found.meant, []))


async def _mistyped(
    session: AsyncSession,
    game: str,
    unknown: dict[int, CardReference],
    answers: Answers,
    now: datetime,
) -> dict[int, Resolved]:
    """Look names up again with words that are similar to their words. All results are
    candidates.
    """
    near: dict[int, CardReference] = {}
    for at, one in unknown.items():
        meant = tuple(tuple(answers.words.get(word, ())) for word in one.words)
        if any(meant):
            near[at] = one._replace(meant=meant)
    if not near:
        return {}
    found = await resolve(session, game, list(near.values()), now)
    return {at: _likest(unknown[at], one) for at, one in zip(near, found, strict=True) if one.total}


def _likest(asked: CardReference, found: Resolved) -> Resolved:
    def likeness(one: Printing) -> tuple[object, ...]:
        return (-fuzz.ratio(asked.full, one.product_name.lower()), one.set_name, one.id)

    return Resolved(sorted(found.printings, key=likeness), found.total, None)
