"""Reads the seller's own names that a search uses: lists, rules, and cards whose names the search
language would parse as something else.

A search without such names reads nothing from the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from cardsync.catalog.collector_number import read_collector_number
from cardsync.catalog.one_name import name_parts, number_in
from cardsync.catalog.product_lines import NAMES
from cardsync.platform.database.read_sources import Rows
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.search.completion import OwnNames
from cardsync.stock.search.doubtful_names import Span, is_doubtful, readable, spans, written
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.folding import holding, spellings
from cardsync.stock.search.known_names import GoverningRule, KnownNames
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import Tree, terms


class NamesOf(Enum):
    """The source of the names that a search may use: the shop's cards, the catalogs (for cards that
    a customer may bring), or `rows_of_file` (`prices/rules/file_queries.py`).
    """

    SHOP = "shop"
    CATALOGS = "catalogs"
    FILE = "file"


_LISTS = "SELECT id, slug, name_key FROM card_list WHERE seller_id = :seller AND deleted_at IS NULL"
_RULES = f"""
    SELECT r.id, r.name, r.query,
           r.enabled AND r.state = 'published'
           AND (r.priority <> {DEFAULT_PRIORITY} OR a.default_rule_enabled) AS governs,
           coalesce((r.settings -> 'guard')::boolean, false) AS guard
      FROM pricing_rule r JOIN account a ON a.seller_id = r.seller_id
     WHERE r.seller_id = :seller AND a.seller_id = :seller ORDER BY r.priority, r.id
"""
_LINES = (
    "SELECT DISTINCT unnest(product_lines || disabled_lines) FROM account WHERE seller_id = :seller"
)
_SEEN = "SELECT product_line, observed_at FROM line_snapshot WHERE seller_id = :seller"


async def known_names(rows: Rows, seller_id: int, *trees: Tree) -> KnownNames:
    """Read the names that the search trees use and, if a tree searches by rule, the names in the
    rules' queries.
    """
    values = {"seller": seller_id}
    governing: tuple[GoverningRule, ...] = ()
    guards: tuple[GoverningRule, ...] = ()
    idle: dict[int, str] = {}
    if any(_asks_rules(tree) for tree in trees):
        # Parsing many long queries would block other requests for too long, so a thread parses
        # them.
        governing, guards, idle = await asyncio.to_thread(_rules, await rows(_RULES, values))
    asked = [*trees, *(rule.tree for rule in (*governing, *guards) if rule.tree is not None)]
    fields = {
        (term.field, value) for tree in asked for term in terms(tree) for value in term.values
    }
    names = {name for name, _ in fields}
    lists = await rows(_LISTS, values) if "list" in names else ()
    return KnownNames(
        lists={slug: id for id, slug, _ in lists},
        list_names={name: id for id, _, name in lists},
        rules=governing,
        guards=guards,
        idle_rules=idle,
        lines=await _lines(rows, values) if "game" in names else NAMES,
        seen=await _seen(rows, values) if fields & {("is", "confirmed"), ("is", "in-flux")} else {},
    )


def _asks_rules(tree: Tree) -> bool:
    return any(
        term.field == "rule" or (term.field == "has" and "rule" in term.values)
        for term in terms(tree)
    )


def _rules(
    rows: Sequence[Sequence[Any]],
) -> tuple[tuple[GoverningRule, ...], tuple[GoverningRule, ...], dict[int, str]]:
    """Return the enabled base rules, the enabled guards, and the names of disabled rules by id."""
    live = [
        (GoverningRule(id, name, _tree(query)), guard) for id, name, query, on, guard in rows if on
    ]
    idle = {id: name for id, name, _, on, _ in rows if not on}
    return tuple(r for r, guard in live if not guard), tuple(r for r, guard in live if guard), idle


def _tree(query: str) -> Tree | None:
    try:
        return parse(query)
    except QueryError:
        return None


async def _lines(rows: Rows, values: Mapping[str, object]) -> tuple[str, ...]:
    return (*NAMES, *(line for (line,) in await rows(_LINES, values) if line not in NAMES))


async def _seen(rows: Rows, values: Mapping[str, object]) -> dict[str, datetime]:
    return {row[0]: row[1] for row in await rows(_SEEN, values)}


async def read_search(rows: Rows, seller_id: int, text: str) -> Tree:
    """Parse a search, whose text may contain names of the shop's cards. Raises QueryError."""
    tree, _ = await _read(rows, seller_id, text)
    return tree


async def with_names(rows: Rows, seller_id: int, text: str, names: NamesOf = NamesOf.SHOP) -> str:
    """Put quotes around card names that the search language would parse as something else. Raises
    QueryError if the resulting text still can't be parsed.
    """
    _, changed = await _read(rows, seller_id, text, names)
    return changed


async def _read(
    rows: Rows, seller_id: int, text: str, names: NamesOf = NamesOf.SHOP
) -> tuple[Tree, str]:
    wrong = tree = None
    try:
        tree = parse(text)
    except QueryError as e:
        wrong = e
    if tree is not None and not is_doubtful(tree, text):
        return tree, text
    changed = written(text, await _names_in(rows, seller_id, spans(text), names))
    named = readable(changed) if changed != text else None
    if named is not None:
        return named, changed
    if tree is None:
        assert wrong is not None
        # The first error describes the search as the seller wrote it.
        raise wrong
    return tree, text


# The statement finds products by their name keys, and compares their names as written afterwards.
# OFFSET 0 makes each step use an index, whatever the planner's statistics are.
_PRODUCTS = """
    SELECT p.id, p.product_name
      FROM product p
     WHERE p.game = ANY (ARRAY(
             SELECT unnest(CAST(:lines AS text[]) || a.product_lines || a.disabled_lines)
               FROM account a WHERE a.seller_id = :seller))
       AND p.name_key = ANY (CAST(:keys AS text[])) OFFSET 0
"""
_OF_SHOP = f"""
    SELECT DISTINCT own.product_name
      FROM ({_PRODUCTS}) AS meant
     CROSS JOIN LATERAL (
            SELECT c.product_name
              FROM card c
             WHERE c.seller_id = :seller AND c.product_id = meant.id
               AND (c.contribution IS NULL OR c.contribution = 'published') OFFSET 0) AS own
     LIMIT 500
"""
_OF_FILE = """
    SELECT DISTINCT i.product_name FROM rows_of_file i
     WHERE i.search_text LIKE ANY (CAST(:patterns AS text[])) LIMIT 500
"""
_NAMED = {
    NamesOf.SHOP: _OF_SHOP,
    NamesOf.CATALOGS: f"SELECT DISTINCT product_name FROM ({_PRODUCTS}) AS meant LIMIT 500",
    NamesOf.FILE: _OF_FILE,
}
_HELD_BY_SHOP = """
    SELECT asked.place, min(c.product_name)
      FROM card c JOIN unnest(CAST(:patterns AS text[])) WITH ORDINALITY AS asked (pattern, place)
        ON c.search_text LIKE asked.pattern
     WHERE c.seller_id = :seller AND (c.contribution IS NULL OR c.contribution = 'published')
     GROUP BY asked.place
"""
_HELD_BY_FILE = """
    SELECT asked.place, min(i.product_name)
      FROM rows_of_file i JOIN unnest(CAST(:patterns AS text[])) WITH ORDINALITY
                               AS asked (pattern, place)
        ON i.search_text LIKE asked.pattern
     GROUP BY asked.place
"""
_HELD = {
    NamesOf.SHOP: _HELD_BY_SHOP,
    NamesOf.CATALOGS: _HELD_BY_SHOP,
    NamesOf.FILE: _HELD_BY_FILE,
}


async def _names_in(
    rows: Rows, seller_id: int, found: Sequence[Span], of: NamesOf
) -> dict[Span, str]:
    """Return the parts of a search that are names of cards, each with the text that replaces it for
    the parser.
    """
    if not found:
        return {}
    values = {
        "seller": seller_id,
        "keys": list(_keys(found)),
        "lines": list(NAMES),
        "patterns": [
            holding(plain)
            for span in found
            for name in filter(None, (span.text, span.front))
            for plain in spellings(name)
        ],
    }
    names = [name for (name,) in await rows(_NAMED[of], values)]
    known = dict[Span, str]()
    for span in found:
        if span.odd and (own := [*filter(span.is_name_of, names)]):
            known[span] = span.as_name(own)
        elif span.front and (fronts := [*filter(span.has_front, names)]):
            known[span] = span.or_front(fronts)
    bad = [span for span in found if span.bad and span not in known]
    return known | (await _held(rows, seller_id, bad[:_ASKED], of) if bad else {})


# The maximum number of unparsable parts of a search that are looked up in the cards' names.
_ASKED = 8


async def _held(rows: Rows, seller_id: int, asked: Sequence[Span], of: NamesOf) -> dict[Span, str]:
    """Return the unparsable parts of a search that occur in names of cards, with their
    replacements.
    """
    patterns = {holding(plain): span for span in asked for plain in spellings(span.text)}
    values = {"seller": seller_id, "patterns": list(patterns)}
    held = await rows(_HELD[of], values)
    of_place = dict(enumerate(patterns.values(), 1))
    return {of_place[place]: of_place[place].as_name([name]) for place, name in held}


def _keys(found: Sequence[Span]) -> set[str]:
    """Return the name keys of products that may have these names. A number at the end of a text may
    be the collector number or a part of the name, so both are tried.
    """
    return {
        name_parts(name, number).name_key
        for span in found
        for name in filter(None, (span.text, span.front))
        for number in (read_collector_number(""), number_in(name))
    }


_SETS = f"""
    SELECT set_name FROM seller_set WHERE seller_id = :seller
     UNION
    SELECT c.set_name FROM card c
     WHERE c.seller_id = :seller AND c.contribution IS NOT NULL AND NOT c.gone
       AND c.set_name <> '' AND {VISIBLE}
     ORDER BY set_name
"""
_OWN_LISTS = """
    SELECT slug, name FROM card_list
     WHERE seller_id = :seller AND deleted_at IS NULL ORDER BY position, id
"""
_OWN_RULES = "SELECT name FROM pricing_rule WHERE seller_id = :seller ORDER BY priority, id"


async def own_names(
    rows: Rows,
    seller_id: int,
    member_id: int | None = None,
    field: str | None = None,
) -> OwnNames:
    """Read the names for completing a search: the names that the member may see or, if `member_id`
    is None, that a key may see. With `field`, read only the names that this field takes.
    """
    values = {"seller": seller_id, "member": member_id}

    async def read(name: str, statement: str) -> Sequence[Sequence[Any]]:
        return await rows(statement, values) if field in (None, name) else ()

    return OwnNames(
        sets=[row[0] for row in await read("set", _SETS)],
        games=[row[0] for row in await read("game", _LINES)],
        lists=[(row[0], row[1]) for row in await read("list", _OWN_LISTS)],
        rules=[row[0] for row in await read("rule", _OWN_RULES)],
    )
