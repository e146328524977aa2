"""Declares the formats of collections, and recognizes the format of a header in any order of
columns. Pure.

A format is declared by a file in `formats/`: the columns that identify it, the meanings of its
columns, its ladder of conditions (`app_words.LADDERS`), and its own words. The file's name is the
format's key.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from cardsync.buying.collections.app_words import Ladder
from cardsync.platform.kit.csv_columns import CsvColumns
from cardsync.platform.table_text import column_name

Field = Literal[
    "copies",
    "foil_copies",
    "name",
    "set_name",
    "set_code",
    "number",
    "variation",
    "finish",
    "condition",
    "language",
    "rarity",
    "game",
    "grade",
    "proxy",
    "sku",
    "listing_id",
    "scryfall_id",
    "cardmarket_id",
    "cardtrader_id",
    "mtgjson_id",
]
FIELDS: Final[tuple[Field, ...]] = get_args(Field)
# Each of these fields identifies the card of a row.
_SAYS_CARD: Final = {
    "name",
    "sku",
    "listing_id",
    "scryfall_id",
    "cardmarket_id",
    "cardtrader_id",
    "mtgjson_id",
}
Mapped = Mapping[str, Sequence[int]]


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The format of an app's files. A header has this format if it has all columns of one of the
    lists in `signs`. `columns` maps our fields to the names of the file's columns. If a field has
    several columns, copies are added up; of other fields, the first cell with a text is used.

    `seen` names the public projects in which the header was found. `game` is empty unless all cards
    are of one game. `conditions`, `finishes` and `languages` map our words to the app's own words.
    A blank or missing finish is unknown, unless `finishes` contains a blank word. With
    `number_holds_code`, numbers begin with the set's code. `note` is a sentence for the docs.
    """

    label: str
    seen: str
    signs: list[list[str]]
    columns: dict[Field, str | list[str]]
    game: str = ""
    ladder: Ladder = "american"
    conditions: dict[Literal["NM", "LP", "MP", "HP", "DMG"], list[str]] = {}
    finishes: dict[str, list[str]] = {}
    languages: dict[str, list[str]] = {}
    number_holds_code: bool = False
    note: str = ""

    def names_of(self, field: Field) -> list[str]:
        names = self.columns.get(field, [])
        return [names] if isinstance(names, str) else names


def _declared() -> dict[str, Format]:
    """Return the declared formats by their keys."""
    found = sorted(files(__package__).joinpath("formats").iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): msgspec.convert(tomllib.loads(file.read_text()), Format)
        for file in found
        if file.name.endswith(".toml")
    }


BY_KEY: Final = _declared()
# The keys of files without a declared format: plain lists, and files whose columns a member named.
PLAIN_TEXT: Final = "text"
MAPPED: Final = "mapped"
LABELS: Final = {key: one.label for key, one in BY_KEY.items()} | {
    PLAIN_TEXT: "Plain text",
    MAPPED: "Your own columns",
}

# The usual column names of each field, best first, for headers that match no format.
_NAMES: Final[Mapping[Field, str]] = {
    "scryfall_id": "scryfall id|scryfallid|scryfall",
    "cardmarket_id": "cardmarket id|cardmarketid|idproduct|mkm id|cardmarket product id",
    "cardtrader_id": "cardtrader id|cardtraderid|blueprint id|cardtrader blueprint id",
    "mtgjson_id": "mtgjson id|mtgjsonid|mtgjson uuid",
    "sku": "sku|tcgplayer sku|sku id",
    "listing_id": "product id|tcgplayer product id|tcgplayer id|tcgplayerid|tcg id|tcgid",
    "copies": (
        "quantity|count|qty|copies|amount|number of copies|quantityx|menge|anzahl|reg qty|normal qty"
        "|regular qty|have|quantité|quantite|cantidad|quantità|quantidade|stück"
    ),
    "foil_copies": "foil qty|foil quantity|foil count|foil copies|foils",
    "name": (
        "name|card name|card|product name|cardname|title|simple name|item name|english name"
        "|kartenname|karte|nom|nombre|nome"
    ),
    "set_code": "set code|edition code|expansion code|setcode|set id|code|set prefix",
    "set_name": (
        "set name|edition name|expansion name|expansion|edition|set|setname|erweiterung|ausgabe"
        "|édition|extension|edición|edizione|espansione|edição"
    ),
    "number": (
        "collector number|collector's number|collectors number|card number|number|cardnumber"
        "|collector #|card #|no.|collector no.|card no.|nr.|nr|nummer|sammlernummer|numéro|número"
        "|numero"
    ),
    "variation": "variation",
    "finish": "finish|foil|printing|variance|foil/non-foil|is foil|isfoil|variant",
    "condition": (
        "condition|card condition|grade condition|cond|zustand|état|etat|estado|condizione|condição"
    ),
    "language": "language|lang|language code|sprache|languages|langue|idioma|lingua",
    "rarity": "rarity",
    "game": "game|product line|category|tcg",
    "grade": "grade",
    "proxy": "proxy|playtest card|is proxy",
}
_CSV: Final = CsvColumns(_NAMES)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# The form of a set's code: capitals, or a short word, or a word with digits, but no spaces. A set's
# name of one word, such as Legends, does not have this form.
_CODE: Final = re.compile(
    r"[A-Z0-9]{2,8}([_-][A-Z0-9]{1,10})?|[a-z0-9]{2,4}|(?=[a-z.]*[0-9])[a-z][a-z0-9.]{1,7}"
)


class Recognized(NamedTuple):
    """A header's format: its key, the positions of each field's columns, and the game of the
    cards.
    """

    key: str
    columns: Mapped
    game: str = ""


def recognize(header: Sequence[str]) -> Recognized | None:
    """Return the format of the header. If several formats fit, return the one with the most
    columns.
    """
    places = _places(header)
    fitting = [
        (len(signs), len(_found(one, places)), key)
        for key, one in BY_KEY.items()
        for signs in one.signs
        if places.keys() >= set(signs)
    ]
    if not fitting:
        return None
    key = max(fitting)[-1]
    found = _found(BY_KEY[key], places)
    if "proxy" not in found and (proxy := _named(places, "proxy")):
        found["proxy"] = proxy
    known = "copies" in found and says_card(found)
    return Recognized(key, found, BY_KEY[key].game) if known else None


def says_card(columns: Iterable[str]) -> bool:
    """Return whether the columns identify the card of a row."""
    named = set(columns)
    return bool(_SAYS_CARD & named) or {"set_code", "number"} <= named


def _places(header: Sequence[str]) -> dict[str, int]:
    """Return the position of each column by its name. If two columns have the same name, the first
    counts.
    """
    places: dict[str, int] = {}
    for at, name in enumerate(header):
        places.setdefault(column_name(name), at)
    return places


def _found(one: Format, places: Mapping[str, int]) -> dict[str, list[int]]:
    found = {
        field: [places[name] for name in one.names_of(field) if name in places]
        for field in one.columns
    }
    return {field: at for field, at in found.items() if at}


def _named(places: Mapping[str, int], field: Field) -> list[int]:
    """Return the positions of the columns with a usual name of the field, the best name first."""
    return [places[name] for name in _NAMES[field].split("|") if name in places]


def is_column(name: str) -> bool:
    """Return whether this is a usual name of a column."""
    return _CSV.field_of(name) is not None


def propose(header: Sequence[str], samples: Iterable[Sequence[str]]) -> dict[str, int]:
    """Propose a field for each column, by the column's name and by the cells of some rows."""
    columns = [list(cells) for cells in zip(*samples, strict=False)]
    found: dict[str, int] = {}
    for at, field in _CSV.by_name(header):
        is_code = field == "set_name" and at < len(columns) and _are_codes(columns[at])
        found.setdefault("set_code" if is_code else field, at)
    for at, cells in enumerate(columns):
        if at in found.values():
            continue
        if told := _by_sample(cells):
            found.setdefault(told, at)
    return found


def _given(cells: Iterable[str]) -> list[str]:
    return [cell.strip() for cell in cells if cell.strip()]


def _are_codes(cells: Sequence[str]) -> bool:
    given = _given(cells)
    return bool(given) and all(_CODE.fullmatch(cell) for cell in given)


def _by_sample(cells: Sequence[str]) -> Field | None:
    """Return the field of a column with an unknown name, by its cells; None if they fit no
    field.
    """
    given = _given(cells)
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
    """Return the key by which a shop's meanings of the header's columns are stored. The order of
    the columns does not matter.
    """
    names = "\x1f".join(sorted(column_name(name) for name in header))
    return hashlib.sha256(names.encode()).hexdigest()


_READ: Final[Mapping[Field, str]] = {
    "sku": "SKU (exact)",
    "scryfall_id": "Scryfall ID",
    "listing_id": "product ID",
    "cardmarket_id": "Cardmarket's product ID",
    "cardtrader_id": "CardTrader's blueprint ID",
    "mtgjson_id": "MTGJSON ID",
    "name": "name",
    "set_name": "set",
    "set_code": "set code",
    "number": "number",
    "variation": "variation",
    "finish": "finish",
    "foil_copies": "foil copies of their own",
    "condition": "condition",
    "language": "language",
    "game": "game",
}


def docs_table() -> str:
    """Return the table of formats for docs/buying.md, with the fields that are read from each
    format.
    """
    rows = ["| format | what is read | header seen in |", "|---|---|---|"]
    for one in sorted(BY_KEY.values(), key=lambda one: one.label.casefold()):
        read = ", ".join(said for field, said in _READ.items() if field in one.columns)
        if "" in one.finishes.get("Normal", []):
            read = read.replace(", finish", ", finish (blank: Normal)")
        out = "; proxies are left out" if "proxy" in one.columns else ""
        note = f"; {one.note}" if one.note else ""
        rows.append(f"| {one.label} | {read}{out}{note} | {one.seen} |")
    return "\n".join(rows)
