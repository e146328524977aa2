"""Computes one comparable `set_key` from the names that the marketplace and catalogs give a set.
Pure.

The key is the set's words, folded and sorted ("Commander: FINAL FANTASY" = "Final Fantasy
Commander"), without the series code before them ("ME05: Pitch Black"). Names with other differences
have a rule here or an alias in `set_aliases.py`. If a catalog divides or joins sets,
`set_aliases.py` lists the parts of a set.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

import polars as pl

from cardsync.catalog import one_name
from cardsync.catalog.product_names import folded
from cardsync.catalog.set_aliases import BY_GAME

# A series code such as "SWSH07: ", "SM - ", "SV8a: " or "CRZ: ", which only Pokemon sets have.
_SERIES = r"^([A-Z]{1,4}[0-9]{0,2}[A-Za-z]?)(?:: | - )\S"
_SERIES_GAMES = ("pokemon", "pokemon_japan")
# The series of a promo set remains in the name, because otherwise all these sets would be
# "Promotional Cards".
_PROMO_SERIES = r"^([A-Z]{1,4}-P) \S"
_CORE_SET_CODE = r"\s*\((?:M[0-9]{2}|[0-9]?[A-Z]{2,3})\)$"
_YEARS = re.compile(r"([0-9]{4})\.\.([0-9]{4})")
_NUMBERED = re.compile(r" *\{(.)\}")
_RULES = {
    "magic": (
        (r"^magic the gathering ", ""),
        (r"\buniverses beyond ", ""),
        (r"^dungeons and dragons (?=adventures)", ""),
        (r"\beternal legal$", "eternal"),
        (r"^core (?=2[0-9]{3}$)", "core set "),
        (r"^magic (?=game night)", ""),
        (r"^(?!starter )(.+) commander decks$", r"\1 commander"),
        # "Extras" before a name are a set's tokens in an app; "Extras" after a name are showcase
        # cards on a marketplace.
        (r"^extras (.+ art series)$", r"\1"),
        (r"^extras (.+)$", r"\1 tokens"),
        (r"^(?!arena )(.+) (?:extras|variants)$", r"\1"),
    ),
    "pokemon": (
        (r"^ex (?!trainer|battle)", ""),
        (r"^mcdonalds collection (?!2021)", "mcdonalds promos "),
    ),
    "lorcana": ((r"^disney lorcana (?!promo cards)", ""),),
}
# The hash of all rules and aliases. If the hash has changed since a catalog was loaded, the
# catalog's set keys may be wrong, so the catalog is loaded again.
EDITION: Final = hashlib.sha256(repr((BY_GAME, _RULES)).encode()).hexdigest()[:12]


class Part(NamedTuple):
    """A set with cards of another set. `number` is the sign in braces in `set_aliases.py`, in upper
    case as in `number_key`.
    """

    set_key: str
    number: str


def set_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `set_key` and `set_series` (the code before the name, or null) for `game` and
    `set_name`, row for row.
    """
    names = rows.select(pl.col("game").cast(pl.String), pl.col("set_name").cast(pl.String))
    in_series = pl.col("game").is_in(_SERIES_GAMES)
    distinct = names.unique().with_columns(
        pl.when(in_series).then(pl.col("set_name").str.extract(_SERIES, 1)).alias("series")
    )
    bare = pl.col("set_name").fill_null("").str.strip_prefix(pl.col("series").fill_null(""))
    plain = distinct.select(
        "game",
        "set_name",
        "series",
        folded(bare.str.replace(_CORE_SET_CODE, "")).alias("words"),
    )
    keys = [set_key(game, words) for game, words in plain.select("game", "words").iter_rows()]
    table = plain.select(
        "game",
        "set_name",
        pl.Series("set_key", keys, dtype=pl.String),
        set_code_key(pl.coalesce("series", pl.col("set_name").str.extract(_PROMO_SERIES, 1))).alias(
            "set_series"
        ),
    )
    on = ["game", "set_name"]
    return names.join(
        table,
        on=on,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).drop(on)


# Each part of an import has the same sets, so the results are cached.
@lru_cache(maxsize=4096)
def set_key(game: str | None, words: str) -> str:
    """Return the key of a folded set name."""
    key = _sorted(_ruled(game, words))
    return _aliases().get((game, key), key)


def _sorted(words: str) -> str:
    return " ".join(sorted(words.split()))


def _ruled(game: str | None, words: str) -> str:
    for pattern, instead in _RULES.get(game or "", ()):
        words = re.sub(pattern, instead, words)
    return words


@cache
def _aliases() -> dict[tuple[str | None, str], str]:
    """Return the key that replaces each alias's key."""
    same: dict[tuple[str | None, str], str] = {}
    for game, line in _lines():
        if " > " not in line:
            *others, name = (_sorted(_words(game, one)) for one in line.split(" = "))
            same |= {(game, other): name for other in others}
    return same


@cache
def _parts() -> dict[tuple[str, str], tuple[Part, ...]]:
    return {
        (game, set_key_of(game, whole)): tuple(
            Part(set_key_of(game, name), "".join(_NUMBERED.findall(part)).upper())
            for part in parts.split(", ")
            for name in _named(_NUMBERED.sub("", part))
        )
        for game, line in _lines()
        for whole, _, parts in [line.partition(" > ")]
        if parts
    }


def parts(game: str, key: str) -> tuple[Part, ...]:
    """Return the parts of a set: the sets in which a catalog without this set may have its cards."""
    words = key.split()
    if game == "magic" and {"promo", "pack"} < set(words):
        left = [word for word in words if word not in ("promo", "pack")]
        return (Part(_sorted(" ".join([*left, "promos"])), "P"),)
    return _parts().get((game, key), ())


def part_columns(sets: pl.DataFrame) -> pl.DataFrame:
    """Return `game`, `set_key`, `part_key` and `part_number` for each part of the sets."""
    rows = [
        (game, key, *part)
        for game, key in sets.select("game", "set_key").unique().drop_nulls().iter_rows()
        for part in parts(game, key)
    ]
    names = ("game", "set_key", "part_key", "part_number")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _lines() -> Iterator[tuple[str, str]]:
    for game, table in BY_GAME.items():
        for line in filter(None, table.split("\n")):
            yield game, line


def _named(name: str) -> Iterator[str]:
    """Yield the names of a name with a range of years (`2000..2003`), or the name itself."""
    years = _YEARS.search(name)
    if years is None:
        yield name
        return
    for year in range(int(years[1]), int(years[2]) + 1):
        yield f"{name[: years.start()]}{year}{name[years.end() :]}"


def _words(game: str | None, name: str) -> str:
    """Return a name's folded words without its series, changed by the rules."""
    if game in _SERIES_GAMES and (series := re.match(_SERIES, name)):
        name = name.removeprefix(series[1])
    return _ruled(game, one_name.folded(re.sub(_CORE_SET_CODE, "", name)))


def set_key_of(game: str | None, name: str) -> str:
    """Return the key of a single set name, as `set_columns` does for columns."""
    return set_key(game, _words(game, name))


def set_code_key(code: pl.Expr) -> pl.Expr:
    """Return a set code if it identifies one set, else null. A code identifies a set if it has a
    digit or ends in "-P": "SV-P" is one set, but "SV" is a series and also the set Supreme Victors.
    """
    lower = code.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.when(lower.str.contains(r"[0-9]|-p$")).then(lower)
