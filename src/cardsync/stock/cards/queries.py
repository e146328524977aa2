"""Reads a page of a seller's cards with their lists and places, and the number of all matching
cards.

Each search reads the seller's cards once. Counting and ordering use the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from psycopg.errors import QueryCanceled
from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.kit.row_pages import Page, cut
from cardsync.platform.old_data.old_kinds import HISTORY
from cardsync.platform.old_data.read_back import Old, rows_of_key
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import BOX, NAMED, WAY
from cardsync.platform.storage import open_store
from cardsync.stock.cards import paging
from cardsync.stock.cards.card_filter import CardFilter, CardPage
from cardsync.stock.cards.names_in_search import own_names
from cardsync.stock.cards.schemas import CardRow, FoundCards, ObservationRow, SearchAnswer
from cardsync.stock.cards.selection import Selected, select_cards
from cardsync.stock.cards.sort_order import page_order
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.limits import CARD_HISTORY_SHOWN, CARD_HISTORY_WHOLE
from cardsync.stock.search.completion import Completion, OwnNames, complete, field_at_end
from cardsync.stock.search.fields import QueryError

_LISTS = """(SELECT coalesce(
         json_agg(json_build_array(t.id, t.slug, t.name) ORDER BY t.position, t.id), '[]')
  FROM card_list_entry e JOIN card_list t ON t.seller_id = e.seller_id AND t.id = e.list_id
 WHERE e.seller_id = :seller AND t.seller_id = :seller AND e.card_id = c.id)"""
_PLACES = f"""(SELECT coalesce(
         json_agg(json_build_array({BOX}, l.slot, l.quantity) ORDER BY {WAY}, l.slot), '[]')
  FROM card_location l {NAMED} WHERE l.seller_id = :seller AND l.card_id = c.id)"""
_GATE = """(SELECT g.verdict FROM gate_hold g
 WHERE g.seller_id = :seller AND g.marketplace_id = c.marketplace_id AND NOT c.gone)"""
_PINNED = """(SELECT n.price FROM price_decision n
 WHERE n.seller_id = :seller AND n.kind = 'pin' AND n.marketplace_id = c.marketplace_id
   AND (n.until IS NULL OR n.until > CAST(:now AS timestamptz)))"""
_BESIDE = {
    "marketplace_product_id": "p.marketplace_product_id",
    "evidence_product_id": "coalesce(p.marketplace_product_id, q.marketplace_product_id)",
    "gate": _GATE,
    "pinned_price": _PINNED,
    "lists": _LISTS,
    "places": _PLACES,
}
_COLUMNS = ", ".join(_BESIDE.get(name, f"c.{name}") for name in CardRow._fields)
_FROM = (
    "card c LEFT JOIN product p ON p.id = c.product_id LEFT JOIN product q ON q.id = p.adopted_by"
)


# The listed value of one card row.
_LISTED = "c.price * c.quantity"


# A search by name searches the first `PROBED` cards for its page; if they do not fill the page, it
# reads all cards. A page that ends after more than PROBED / REACHED_BY cards is not searched there.
PROBED = 5_000
REACHED_BY = 4
# A search by name and other columns reads the others of the first `FEW` cards whose texts match; if
# more match and these do not fill an uncounted page, it reads all cards.
FEW = 2_000
MANY = 2**62


async def find_cards(
    reading: Reading,
    caller: Caller,
    wanted: CardFilter,
    page: CardPage,
    *,
    worth: bool = False,
    counted: bool = True,
) -> FoundCards:
    """Find a page of cards. With `worth`, also add up the listed value of all matching cards.
    Without `counted`, a page that is found sooner is not counted. Raises QueryError.
    """
    selected = await select_cards(reading.rows, caller, wanted, clock.now())
    listed = _LISTED if worth else ""
    if not counted and _may_be_first(selected, page):
        first = await _first_cards(reading, selected, page)
        if len(first) > page.per_page:
            until = page.offset + page.per_page
            return FoundCards(first[: page.per_page], until, has_more=True)
    enough = page.offset + page.per_page if page.sort == "name" and not counted else MANY
    rows = await _page_of_all(reading, selected, page, listed, enough)
    # For a page beyond the last one, the statement returns one row without a card.
    total, value = rows[0][:2]
    cards = [CardRow._make(row[2:]) for row in rows if row[2] is not None]
    if total is None:
        return FoundCards(cards, enough, has_more=True)
    return FoundCards(cards, total, value)


async def _page_of_all(
    reading: Reading, selected: Selected, page: CardPage, worth: str, enough: int
) -> list[TupleRow]:
    order = page_order(page)
    values = selected.values | page.values | {"few": FEW, "enough": enough}
    shown = order, _COLUMNS, _FROM, worth
    statements = [paging.page_of(selected.where, *shown)]
    if _by_names(selected, page):
        statements.insert(0, paging.page_of_names(selected.matches, *shown))
    elif selected.active and selected.texts:
        statements.insert(
            0, paging.page_of_few(selected.texts, page.direction, selected.where, *shown)
        )
    for statement in statements:
        [rows] = await reading.together([statement], values, last=True, long=True)
        if rows:
            break
    return rows


def _by_names(selected: Selected, page: CardPage) -> bool:
    """Return whether the index of names has all columns that find and order the cards."""
    return page.sort == "name" and selected.active and selected.by_text


def _may_be_first(selected: Selected, page: CardPage) -> bool:
    if page.sort != "name" or not selected.active or selected.reads_others or selected.by_ids:
        return False
    return selected.everything or (page.offset + page.per_page) * REACHED_BY <= PROBED


async def _first_cards(reading: Reading, selected: Selected, page: CardPage) -> list[CardRow]:
    """Return the cards of a page and the next one, if they are among the first cards of many."""
    statement = paging.first_of(
        selected.matches, page.direction, _COLUMNS, _FROM, everything=selected.everything
    )
    values = {"limit": page.per_page + 1, "offset": page.offset, "probed": PROBED}
    return list(map(CardRow._make, await reading.rows(statement, selected.values | values)))


async def count_cards(
    reading: Reading, caller: Caller, wanted: CardFilter, *, worth: bool = False
) -> tuple[int, Decimal | None]:
    """Return the number of cards that a search finds and, with `worth`, their listed value. Raises
    InvalidPayload.
    """
    selected = await _selected(reading, caller, wanted)
    count = paging.count_of(selected.where, _LISTED if worth else "")
    [(total, value)] = await _in_time(reading, count, selected.values)
    return total, value


async def order_of_cards(
    reading: Reading, caller: Caller, wanted: CardFilter, page: CardPage
) -> str:
    """Return the ids of up to `limits.CARDS_SCROLLED` cards of a search, in its order, as one text
    joined by commas. Raises InvalidPayload.
    """
    selected = await _selected(reading, caller, wanted)
    order = page_order(page)
    values = selected.values | {"limit": limits.CARDS_SCROLLED}
    rows: list[TupleRow] = []
    if _by_names(selected, page):
        named = paging.order_of_names(selected.matches, order)
        rows = await _in_time(reading, named, values)
    rows = rows or await _in_time(reading, paging.order_of(selected.where, order), values)
    return rows[0][0] or ""


async def cards_of(reading: Reading, caller: Caller, card_ids: Sequence[int]) -> list[CardRow]:
    """Return the cards in the order of the ids. Cards that the caller cannot see are missing."""
    if not card_ids:
        return []
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "ids": list(card_ids),
        "now": clock.now(),
    }
    rows = await reading.rows(_CARDS, values)
    place = {card_id: number for number, card_id in enumerate(card_ids)}
    return sorted(map(CardRow._make, rows), key=lambda row: place[row.id])


async def cards_behind(
    reading: Reading,
    caller: Caller,
    wanted: CardFilter,
    page: CardPage,
    card_id: int,
) -> Page[CardRow]:
    """Return one page of the cards that follow the card `card_id` in the order of a search. Raises
    NotFound, InvalidPayload.
    """
    selected = await _selected(reading, caller, wanted)
    seen = {"seller": caller.seller_id, "id": card_id, "member": caller.member_id}
    if not await reading.rows(_SEEN, seen):
        raise errors.NotFound(f"there is no card {card_id}")
    order = page_order(page)
    statement = paging.following(selected.where, order, page.direction, _COLUMNS, _FROM)
    values = selected.values | {"behind": card_id, "limit": page.per_page + 1}
    rows = await _in_time(reading, statement, values)
    return cut(list(map(CardRow._make, rows)), page.per_page, lambda row: row.id)


async def _selected(reading: Reading, caller: Caller, wanted: CardFilter) -> Selected:
    """Select the cards of a search. Raises InvalidPayload."""
    try:
        return await select_cards(reading.rows, caller, wanted, clock.now())
    except QueryError as e:
        raise errors.InvalidPayload(f"search: {e} (at {e.offset})") from e


async def _in_time(
    reading: Reading, statement: str, values: Mapping[str, object]
) -> list[TupleRow]:
    """Return the rows of a statement. Raises InvalidPayload if the search takes too long."""
    try:
        return await reading.rows(statement, values)
    except QueryCanceled as e:
        raise errors.InvalidPayload("search: it takes too long; narrow the search") from e


async def search_cards(
    reading: Reading,
    caller: Caller,
    wanted: CardFilter,
    page: CardPage,
    seconds: float,
    *,
    worth: bool = False,
    counted: bool = True,
) -> SearchAnswer:
    """Find a page of the cards that the caller sees. A search that cannot be parsed, or that takes
    longer than `seconds`, returns no cards and the reason.
    """
    try:
        found = await find_cards(reading, caller, wanted, page, worth=worth, counted=counted)
    except QueryError as e:
        return SearchAnswer(FoundCards([], 0), [(str(e), e.offset)])
    except QueryCanceled:
        why = f"this search takes longer than {seconds:g} s: narrow the search"
        return SearchAnswer(FoundCards([], 0), [(why, 0)])
    return SearchAnswer(found, [])


async def cards_after(
    reading: Reading, caller: Caller, wanted: CardFilter, after: int, limit: int
) -> list[CardRow]:
    """Return up to `limit` selected cards with ids above `after`, in the order of ids. Raises
    QueryError.
    """
    selected = await select_cards(reading.rows, caller, wanted, clock.now())
    statement = (
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE {selected.where} AND c.id > :after"
        " ORDER BY c.id LIMIT :limit"
    )
    values = selected.values | {"after": after, "limit": limit}
    [rows] = await reading.together([statement], values, last=True)
    return [CardRow._make(row) for row in rows]


_SEEN = f"SELECT 1 FROM card c WHERE c.seller_id = :seller AND c.id = :id AND {VISIBLE}"
_TYPES = {"seller": "bigint", "member": "bigint", "now": "timestamptz"}
_CARD = Planned(
    "one_card",
    f"SELECT {_COLUMNS} FROM {_FROM} WHERE c.seller_id = :seller AND c.id = :id AND {VISIBLE}",
    _TYPES | {"id": "bigint"},
)
_CARDS = Planned(
    "cards_of_page",
    f"""SELECT {_COLUMNS} FROM {_FROM}
 WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[])) AND {VISIBLE}""",
    _TYPES | {"ids": "bigint[]"},
)
_OBSERVED = ", ".join(ObservationRow._fields)
_HISTORY = f"""
    SELECT {_OBSERVED} FROM card WHERE seller_id = :seller AND id = :id
    UNION ALL (
        SELECT {_OBSERVED} FROM price_observation WHERE seller_id = :seller AND card_id = :id
         ORDER BY observed_at DESC LIMIT :limit
    ) ORDER BY observed_at DESC LIMIT :limit
"""


async def read_card(
    reading: Reading,
    caller: Caller,
    card_id: int,
    most: int = CARD_HISTORY_SHOWN,
    *,
    last: bool = True,
) -> tuple[CardRow, list[ObservationRow]]:
    """Return the card and its observations in the database, newest first. `read_whole_card` also
    returns older observations, which are in the object store. Raises NotFound.
    """
    values = {
        "seller": caller.seller_id,
        "id": card_id,
        "member": caller.member_id,
        "limit": most,
        "now": clock.now(),
    }
    cards, history = await reading.together([_CARD, _HISTORY], values, last=last)
    if not cards:
        raise errors.NotFound(f"there is no card {card_id}")
    return CardRow._make(cards[0]), [ObservationRow._make(row) for row in history]


OWN_FIELDS = ("set", "game", "list", "rule")


async def complete_search(reading: Reading, caller: Caller, text: str) -> list[Completion]:
    """Return texts that complete the last term of a search. The database is read only if the term's
    field is in `OWN_FIELDS`: the values of these fields are the seller's own names.
    """
    if (field := field_at_end(text)) not in OWN_FIELDS:
        return complete(text, OwnNames())
    own = await own_names(reading.rows, caller.seller_id, caller.member_id, field)
    return complete(text, own)


async def read_whole_card(
    database: Database, caller: Caller, settings: Settings, now: datetime, card_id: int
) -> tuple[CardRow, list[ObservationRow]]:
    """Return the card and all its observations, newest first. Raises NotFound."""
    most = CARD_HISTORY_WHOLE
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        card, history = await read_card(reading, caller, card_id, most)
    # The connection returns to the pool before the files are read.
    old = Old(database, open_store(settings), caller.seller_id)
    rows = await rows_of_key(old, HISTORY, card_id, most - len(history))
    older = (ObservationRow._make(map(row.get, ObservationRow._fields)) for row in rows)
    return card, [*history, *older]
