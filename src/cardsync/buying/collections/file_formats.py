"""Names the formats in which collections come, and finds the one of a header, whatever the order of
its columns. Pure.

The headers of the apps without a table in the specification were seen in public projects in
November 2026: Moxfield, Archidekt and Deckbox in nicho92/MtgDesktopCompanion (`ArchidektExport`,
`DeckBoxExport`) and StepKie/MtgCsvHelper (`Resources/SampleCsvs`), Moxfield also in
VincentGarbonick/magic-file-formatter (`constants.py`), Collectr in pokegridview (`README.md`), and
ManaBox in drelyea3/ManaBoxBulkImport and sboulema/ManaBoxImporter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from cardsync.catalog.marketplace_columns import COLUMNS

Field = Literal[
    "copies",
    "name",
    "set_name",
    "set_code",
    "number",
    "finish",
    "condition",
    "language",
    "rarity",
    "game",
    "grade",
    "sku",
    "listing_id",
    "scryfall_id",
]
FIELDS: Final[tuple[Field, ...]] = get_args(Field)
Mapped = Mapping[str, int]


class Format(NamedTuple):
    """A format by the columns that no other has, and the columns that are read.

    `game` is the game of its cards, if they are all of one.
    """

    key: str
    label: str
    marks: frozenset[str]
    columns: Mapping[Field, str]
    game: str = ""


def _format(
    key: str,
    label: str,
    marks: str,
    of_game: str,
    **columns: str,
) -> Format:
    named = {field: columns[field] for field in FIELDS if field in columns}
    return Format(key, label, frozenset(marks.split("|")), named, of_game)


_OWN: Final = {
    "copies": "quantity",
    "name": "product_name",
    "set_name": "set_name",
    "number": "number",
    "condition": "condition_label",
    "rarity": "rarity",
    "game": "product_line_label",
    "listing_id": "listing_id",
}
FORMATS: Final = (
    _format(
        "tcgplayer_app",
        "TCGplayer app",
        "simple name|sku|printing",
        "",
        copies="quantity",
        name="name",
        set_name="set",
        set_code="set code",
        number="card number",
        finish="printing",
        condition="condition",
        language="language",
        rarity="rarity",
        sku="sku",
        listing_id="product id",
    ),
    _format(
        "manabox",
        "ManaBox",
        "manabox id",
        "magic",
        copies="quantity",
        name="name",
        set_name="set name",
        set_code="set code",
        number="collector number",
        finish="foil",
        condition="condition",
        language="language",
        rarity="rarity",
        scryfall_id="scryfall id",
    ),
    _format(
        "dragon_shield_web",
        "Dragon Shield, web",
        "trade quantity|card name|printing",
        "",
        copies="quantity",
        name="card name",
        set_name="set name",
        set_code="set code",
        number="card number",
        finish="printing",
        condition="condition",
        language="language",
    ),
    _format(
        "dragon_shield_app",
        "Dragon Shield, app",
        "cardnumber|expansion code",
        "",
        copies="quantity",
        name="name",
        set_name="expansion name",
        set_code="expansion code",
        number="cardnumber",
        finish="foil",
        condition="condition",
        language="language",
    ),
    _format(
        "mtggoldfish",
        "MTGGoldfish",
        "card|set id|set name|foil",
        "magic",
        copies="quantity",
        name="card",
        set_name="set name",
        set_code="set id",
        finish="foil",
    ),
    _format(
        "moxfield",
        "Moxfield",
        "tradelist count|edition|collector number",
        "magic",
        copies="count",
        name="name",
        set_code="edition",
        number="collector number",
        finish="foil",
        condition="condition",
        language="language",
    ),
    _format(
        "archidekt",
        "Archidekt",
        "finish|edition name|edition code",
        "magic",
        copies="quantity",
        name="name",
        set_name="edition name",
        set_code="edition code",
        number="collector number",
        finish="finish",
        condition="condition",
        language="language",
        rarity="rarity",
        scryfall_id="scryfall id",
    ),
    _format(
        "deckbox",
        "Deckbox",
        "tradelist count|edition|card number",
        "magic",
        copies="count",
        name="name",
        set_name="edition",
        set_code="edition code",
        number="card number",
        finish="foil",
        condition="condition",
        language="language",
        rarity="rarity",
        scryfall_id="scryfall id",
    ),
    _format(
        "collectr",
        "Collectr",
        "portfolio name|product name|variance",
        "",
        copies="quantity",
        name="product name",
        set_name="set",
        number="card number",
        finish="variance",
        condition="card condition",
        rarity="rarity",
        game="category",
        grade="grade",
    ),
    _format(
        "pricing_export",
        "Pricing export",
        "tcgplayer id|product line|total quantity",
        "",
        **{field: COLUMNS[column].lower() for field, column in _OWN.items() if field != "listing_id"},
        sku=COLUMNS["listing_id"].lower(),
    ),
)  # fmt: skip
BY_KEY: Final = {one.key: one for one in FORMATS}
# The key of the formats that no header names.
PLAIN_TEXT: Final = "text"
MAPPED: Final = "mapped"
LABELS: Final = {one.key: one.label for one in FORMATS} | {
    PLAIN_TEXT: "Plain text",
    MAPPED: "Your own columns",
}

# Names of columns as apps and people write them, for headers that no format has. Delver Lens lets
# its user choose the columns; these are its names, too.
_NAMES: Final[Mapping[Field, str]] = {
    "scryfall_id": "scryfall id|scryfallid|scryfall",
    "sku": "sku|tcgplayer sku|sku id",
    "listing_id": "product id|tcgplayer product id|tcgplayer id|tcgplayerid",
    "copies": "quantity|count|qty|copies|amount|number of copies|quantityx|menge|anzahl",
    "name": "name|card name|card|product name|cardname|title|simple name",
    "set_code": "set code|edition code|expansion code|setcode|set id|code",
    "set_name": "set name|edition name|expansion name|expansion|edition|set|setname",
    "number": (
        "collector number|collector's number|collectors number|card number|number|cardnumber"
        "|collector #|card #|no."
    ),
    "finish": "finish|foil|printing|variance|foil/non-foil|is foil|variant",
    "condition": "condition|card condition|grade condition|cond|zustand",
    "language": "language|lang|language code|sprache",
    "rarity": "rarity",
    "game": "game|product line|category",
    "grade": "grade",
}
_BY_NAME: Final = {
    name: field for field, names in _NAMES.items() for name in names.split("|")
}  # fmt: skip
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Recognized(NamedTuple):
    """A format, the places of its columns, and the game of its cards."""

    key: str
    columns: Mapped
    game: str = ""


def plain_name(name: str) -> str:
    """Return a column's name as names are compared."""
    return " ".join(name.replace("_", " ").split()).casefold()


def recognize(header: Sequence[str]) -> Recognized | None:
    """Return the format whose marks the header has; of several, the one with the most columns."""
    places = _places(header)
    fitting = [one for one in FORMATS if one.marks <= places.keys()]
    if not fitting:
        return None
    best = max(fitting, key=lambda one: (len(one.marks), len(_found(one, places))))
    found = _found(best, places)
    return Recognized(best.key, found, best.game) if {"name", "copies"} <= found.keys() else None


def _places(header: Sequence[str]) -> dict[str, int]:
    """Return where each column is; of two with one name, the first."""
    places: dict[str, int] = {}
    for at, name in enumerate(header):
        places.setdefault(plain_name(name), at)
    return places


def _found(one: Format, places: Mapping[str, int]) -> dict[str, int]:
    return {field: places[name] for field, name in one.columns.items() if name in places}


def propose(header: Sequence[str], samples: Iterable[Sequence[str]]) -> dict[str, int]:
    """Propose which column is which, by their names, and by what some rows hold."""
    found: dict[str, int] = {}
    for at, name in enumerate(header):
        field = _BY_NAME.get(plain_name(name))
        if field is not None:
            found.setdefault(field, at)
    columns = [list(cells) for cells in zip(*samples, strict=False)]
    for at, cells in enumerate(columns):
        if at in found.values():
            continue
        field = _by_sample(cells)
        if field is not None:
            found.setdefault(field, at)
    return found


def _by_sample(cells: Sequence[str]) -> Field | None:
    """Return what a column without a known name must be by its cells."""
    given = [cell.strip() for cell in cells if cell.strip()]
    if not given:
        return None
    if all(_UUID.fullmatch(cell) for cell in given):
        return "scryfall_id"
    if all(cell.isdecimal() and len(cell) <= 3 for cell in given):
        return "copies"
    if all(len(cell) > 3 and not cell[0].isdigit() for cell in given):
        return "name" if len(set(given)) * 2 > len(given) else None
    return None


def header_key(header: Sequence[str]) -> str:
    """Return the key under which a shop keeps a mapping: the same columns in another order have
    the same.
    """
    names = "\x1f".join(sorted(plain_name(name) for name in header))
    return hashlib.sha256(names.encode()).hexdigest()
