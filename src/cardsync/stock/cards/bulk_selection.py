"""Selects cards for a write, by marketplace ids, by card ids, or by a search with filters, and
returns a query of the cards' ids.

If a caller sends several of these forms, only the first in this order is used. `selected_ids`
narrow any form. Ids of other sellers' cards and unknown ids are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec
import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.read_sources import Rows
from cardsync.platform.described import Like
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.value_types import Json, JsonObject, Values
from cardsync.stock.cards.card_filter import CardFilter, ids_of, line_of, read_filter, selected_ids
from cardsync.stock.cards.selection import select_cards
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.limits import SELECTED_CHARACTERS, SELECTED_IDS
from cardsync.stock.search.fields import QueryError

Ids = Annotated[list[Annotated[Json, Like(int)]], msgspec.Meta(max_length=SELECTED_IDS)]
"""Ids are integers. `Selection` checks their type itself, because the parser of request bodies
accepts "5" and 5.0, too.
"""
Filter = Annotated[str, msgspec.Meta(max_length=limits.FILTER_CHARACTERS)]
SelectedIds = Annotated[str, msgspec.Meta(max_length=SELECTED_CHARACTERS)]
_TEXTS = ("search", "game", "product_line", "status")
_FORMS = ("marketplace_ids", "card_ids")


class Selection(msgspec.Struct):
    """A selection of cards by `marketplace_ids`, else by `card_ids`, else by `search` and filters.

    Custom listings have negative marketplace ids.
    """

    marketplace_ids: Ids | None = None
    card_ids: Ids | None = None
    search: str | None = None
    game: Filter | None = None
    product_line: Filter | None = None
    status: Filter | None = None
    """Only cards of this status: active, gone or all"""
    selected_ids: Ids | SelectedIds | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        for name in _FORMS:
            for place, id in enumerate(getattr(self, name) or ()):
                if type(id) is not int:
                    raise ValueError(f"{name}[{place}]: must be an id")

    @property
    def given(self) -> JsonObject:
        """Return the parts that the caller sent, by name.

        A blank text counts as absent; `selected_ids` narrow the selection even if they are empty or
        null.
        """
        texts = {name: text for name in _TEXTS if (text := getattr(self, name)) and text.strip()}
        forms = {name: ids for name in _FORMS if (ids := getattr(self, name)) is not None}
        narrowing = (
            {} if self.selected_ids is msgspec.UNSET else {"selected_ids": self.selected_ids}
        )
        return texts | forms | narrowing


class Picked(NamedTuple):
    """A SQL query that returns each picked card once, with its `id` and its `place` in the order of
    the selection, and the query's values.
    """

    query: str
    values: Values


_BY_ID = """
    SELECT c.id, min(given.place) AS place
      FROM unnest(CAST(:given AS bigint[])) WITH ORDINALITY AS given (id, place)
           JOIN card c ON c.seller_id = :seller AND c.{column} = given.id
     WHERE c.seller_id = :seller AND {visible} AND {narrowed} GROUP BY c.id
"""
_NARROWED = "c.id = ANY (CAST(:ids AS bigint[]))"


def of_query(given: Mapping[str, Sequence[str]]) -> Selection:
    """Read a selection from a URL's query. Ids are separated by commas, or their parameter is
    repeated. Raises InvalidPayload.
    """
    texts = {name: given[name][-1] for name in _TEXTS if given.get(name)}
    ids = {name: _integers(name, given[name]) for name in _FORMS if name in given}
    narrowing = selected_ids(given)
    narrowed = {} if narrowing is None else {"selected_ids": narrowing}
    return Selection(**texts, **ids, **narrowed)  # type: ignore[arg-type]


def _integers(name: str, texts: Sequence[str]) -> list[int]:
    joined = ",".join(texts).strip()
    parts = [part.strip() for part in joined.split(",")] if joined else []
    ids = [id for part in parts if (id := read_id(part)) is not None]
    if len(ids) < len(parts):
        raise errors.InvalidPayload(f"{name}: {joined[:60]!r} is not a list of IDs")
    return ids


def both(body: Selection | None, query: Selection) -> Selection:
    """Combine the selections of a request's body and of its URL's query.

    Raises InvalidPayload if both have the same field.
    """
    said = (body or Selection()).given
    asked = query.given
    for name in asked.keys() & said.keys():
        raise errors.InvalidPayload(f"{name}: it is in both the body and the query")
    return Selection(**said, **asked)


async def pick_cards(rows: Rows, caller: Caller, selection: Selection, now: datetime) -> Picked:
    """Pick the cards of a selection. Raises InvalidPayload if the selection is empty, or if its
    search can't be read.
    """
    if not selection.given:
        raise errors.InvalidPayload(
            "nothing is selected: send marketplace_ids, card_ids, or a search that is not blank",
        )
    ids = None if selection.selected_ids is msgspec.UNSET else ids_of(selection.selected_ids)
    for column, given in (
        ("marketplace_id", selection.marketplace_ids),
        ("id", selection.card_ids),
    ):
        if given is not None:
            return _picked_by(
                column,
                [id for id in given if abs(id) < 2**63],
                ids,
                caller,
            )
    try:
        found = await select_cards(
            rows,
            caller,
            _filter(selection, ids),
            now,
        )
    except QueryError as e:
        raise errors.InvalidPayload(f"search: {e} (at {e.offset})") from e
    return Picked(f"SELECT c.id, c.id AS place FROM card c WHERE {found.where}", found.values)


def _picked_by(
    column: str,
    given: list[int],
    ids: tuple[int, ...] | None,
    caller: Caller,
) -> Picked:
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "given": given,
    }
    if ids is None:
        return Picked(_BY_ID.format(column=column, narrowed="true", visible=VISIBLE), values)
    return Picked(
        _BY_ID.format(column=column, narrowed=_NARROWED, visible=VISIBLE),
        values | {"ids": list(ids)},
    )


def _filter(selection: Selection, ids: tuple[int, ...] | None) -> CardFilter:
    status = read_filter({"status": [selection.status or ""]}).status
    game = line_of(selection.game or "", selection.product_line or "")
    return CardFilter(
        (selection.search or "").replace("\0", "\ufffd"),
        game,
        status,
        ids,
    )


async def run_picked(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    statement: str,
    values: Values,
    seconds: float,
) -> Sequence[Any]:
    """Run a statement that reads the picked cards as `{picked}`, and return its rows. Only the
    values that the statement names are bound.

    Raises InvalidPayload if the selection can't be read or the statement takes too long.
    """

    async def rows(query: str, given: Mapping[str, object]) -> Sequence[Any]:
        return (await session.execute(text(query), given)).all()

    picked = await pick_cards(rows, caller, selection, values["now"])
    whole = statement.format(picked=picked.query)
    try:
        return await rows(
            whole,
            {n: value for n, value in {**picked.values, **values}.items() if f":{n}" in whole},
        )
    except DBAPIError as e:
        if isinstance(e.orig, psycopg.errors.QueryCanceled):
            raise errors.InvalidPayload(
                f"search: it takes longer than {seconds:g} s: narrow the search"
            ) from e
        raise
