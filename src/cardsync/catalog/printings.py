"""Declares the printings of each game, which are the editions and finishes that the marketplace
writes after a condition, and converts other spellings to these printings. Pure.

A printing that is not declared is matched, searched and shown by its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cardsync.platform.errors import InvalidPayload

if TYPE_CHECKING:
    import polars as pl

NORMAL: Final = "Normal"
# The finish of a sealed product in catalogs.
SEALED_FINISH: Final = "Sealed"
_WITH_FOIL: Final = (NORMAL, "Foil")
_POKEMON: Final = (
    NORMAL,
    "Holofoil",
    "Reverse Holofoil",
    "1st Edition",
    "1st Edition Holofoil",
    "Unlimited",
    "Unlimited Holofoil",
)
# The first printing of a game is its most common, and the default in forms.
OF_GAMES: Final = {
    "magic": _WITH_FOIL,
    "pokemon": _POKEMON,
    "yugioh": ("1st Edition", "Unlimited", "Limited", NORMAL),
    "flesh_and_blood": (
        NORMAL,
        "Rainbow Foil",
        "Cold Foil",
        "Gold Foil",
        "1st Edition Normal",
        "1st Edition Rainbow Foil",
        "1st Edition Cold Foil",
        "1st Edition Gold Foil",
        "Unlimited Edition Normal",
        "Unlimited Edition Rainbow Foil",
        "Unlimited Edition Cold Foil",
        "Unlimited Edition Gold Foil",
    ),
    "digimon": _WITH_FOIL,
    "one_piece": _WITH_FOIL,
    "lorcana": (NORMAL, "Cold Foil", "Holofoil"),
    "star_wars_unlimited": _WITH_FOIL,
    "dragon_ball_fusion_world": _WITH_FOIL,
    "union_arena": (NORMAL, "Foil", "Holofoil"),
    "pokemon_japan": _POKEMON,
    "gundam": (NORMAL, "Holofoil", "Foil"),
    "riftbound": _WITH_FOIL,
}
PRINTINGS: Final = tuple(dict.fromkeys(name for names in OF_GAMES.values() for name in names))
# A longer text after a condition is not a printing.
LONGEST: Final = 60
_SAID: Final = {
    "first": "1st",
    "holo": "holofoil",
    "reverse": "reverse holofoil",
    "reversed": "reverse holofoil",
    "rh": "reverse holofoil",
    "nonfoil": "normal",
    "nonholo": "normal",
    "regular": "normal",
}
# These words mean the same as no printing.
_SILENT: Final = frozenset({"edition", "normal", "printing"})
_EDITIONS: Final = frozenset({"1st", "unlimited", "limited"})
_FOILS: Final = frozenset({"foil", "holofoil"})
# Early editions are so rare that a person names them, so a card without an edition is not of one of
# these. In Yu-Gi-Oh all editions are common, so this does not apply there.
_EARLY: Final = frozenset({"1st", "limited"})
_EDITIONS_ARE_COMMON: Final = ("yugioh",)
_RANKS: Final = ("early", "foil", "parallel", "unnamed")


def printings_of(game: str, finish: str | None = None) -> tuple[str, ...]:
    """Return the printings of a game, with the product's own `finish` first; all printings for an
    unknown game.
    """
    own = (finish,) if finish not in (None, SEALED_FINISH) else ()
    return tuple(dict.fromkeys((*own, *OF_GAMES.get(game, PRINTINGS))))


def is_foil(printing: str) -> bool:
    return printing.lower().endswith("foil")


def _words(text: str) -> frozenset[str]:
    """Return the words that distinguish printings: "Holo 1st Edition" is "1st Edition Holofoil"."""
    plain = text.lower().replace("-", " ").replace("non ", "non").replace("holo foil", "holofoil")
    said = " ".join(_SAID.get(word, word) for word in plain.split())
    return frozenset(said.split()) - _SILENT


# The printing of each set of words; of two printings with the same words, the first.
_BY_WORDS: Final = {
    game: {_words(name): name for name in reversed(names)}
    for game, names in (*OF_GAMES.items(), (None, PRINTINGS))
}
_BY_NAME: Final = {name.lower(): name for name in PRINTINGS}


def printing_named(text: str, game: str | None = None) -> str | None:
    """Return the game's printing with this spelling, else another game's; None for an unknown text."""
    plain = " ".join(text.split())
    words = _words(plain)
    own = _BY_WORDS[game].get(words) if game in OF_GAMES else None
    return own or _BY_NAME.get(plain.lower()) or _BY_WORDS[None].get(words)


def read_printing(text: str, game: str | None = None) -> str:
    """Return the printing with this spelling; an unknown text is its own printing."""
    return printing_named(text, game) or " ".join(text.split())


class MeantPrintings(NamedTuple):
    """The printings, in lower case, that a searched word names, and all printings that it may mean:
    "foil" names Foil and Holofoil, and may mean the foil of any edition.
    """

    named: tuple[str, ...]
    possible: tuple[str, ...]


class _Parts(NamedTuple):
    edition: frozenset[str]
    foil: bool
    kind: frozenset[str]


def _parts(text: str) -> _Parts:
    words = _words(text)
    return _Parts(words & _EDITIONS, bool(words & _FOILS), words - _EDITIONS - _FOILS)


_PARTS: Final = {name.lower(): _parts(name) for name in PRINTINGS}


def printings_meant(text: str) -> MeantPrintings:
    """Return the printings that a searched word means; an unknown text means itself."""
    said = _parts(text)
    if said.edition and said[1:] == (False, frozenset()):
        named = possible = [name for name, own in _PARTS.items() if own.edition == said.edition]
    else:
        possible = [
            name
            for name, own in _PARTS.items()
            if said.edition <= own.edition
            and said.foil == own.foil
            and said.kind <= own.kind
            and ("reverse" in said.kind) == ("reverse" in own.kind)
        ]
        named = [
            name
            for name in possible
            if (_PARTS[name].edition, _PARTS[name].kind) == (said.edition, said.kind)
        ]
    known = tuple(possible) or (text,)
    return MeantPrintings(tuple(named) or known, known)


def base_finishes(pairs: pl.DataFrame, card: list[str], finish: str) -> pl.DataFrame:
    """Return the pairs with the base finish of each `card`: its only finish, or else the finish
    that is not a first edition, a foil or a parallel. If several finishes remain, all their pairs
    are returned.
    """
    import polars as pl

    distinct = pairs.select("game", finish).unique()
    ranks = [_rank(*one) for one in distinct.iter_rows()]
    table = distinct.hstack(
        pl.DataFrame(ranks, schema=dict.fromkeys(_RANKS, pl.Int8), orient="row")
    )
    ranked = pairs.join(
        table, on=["game", finish], how="left", nulls_equal=True, maintain_order="left"
    )
    for rank in _RANKS:
        ranked = ranked.filter(pl.col(rank) == pl.col(rank).min().over(card))
    return ranked.select(pairs.columns)


def _rank(game: str, finish: str | None) -> tuple[int, int, int, int]:
    """Return a sort key that is lowest for the base finish: early edition, foil, parallel, and no
    finish, most important first.
    """
    own = _parts(finish or "")
    early = bool(own.edition & _EARLY) and game not in _EDITIONS_ARE_COMMON
    parallel = "reverse" in own.kind if own.foil else bool(own.kind)
    return int(early), int(own.foil), int(parallel), int(finish is None)


def checked_printing(field: str, given: str, game: str, own: str | None = None) -> str:
    """Return the printing that a person enters for a card: the product's own, a declared printing,
    or the text. Raises InvalidPayload.
    """
    plain = " ".join(given.split())
    if own and plain.lower() == own.lower():
        return own
    if not 0 < len(plain) <= LONGEST:
        raise InvalidPayload(f"{field}: has 1 to {LONGEST} characters")
    return read_printing(plain, game)


def own_printings(rows: pl.DataFrame, column: str) -> pl.Series:
    """Return the printings of `column` in the spelling of the row's `game`, row for row; null for a
    blank text.
    """
    import polars as pl

    texts = rows.select("game", pl.col(column).cast(pl.String).str.strip_chars().alias("text"))
    distinct = texts.filter(pl.col("text") != "").unique()
    named = [read_printing(text, game) for game, text in distinct.iter_rows()]
    table = distinct.with_columns(pl.Series(column, named, dtype=pl.String))
    found = texts.join(table, on=["game", "text"], how="left", maintain_order="left")
    return found.get_column(column)
