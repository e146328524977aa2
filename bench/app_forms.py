"""`python bench/app_forms.py [--cards 2400] [--seed 1]`: cards of the shared catalogs, written as
six apps write them, and read back as collections: how many rows are matched, wrong, waiting and not
read.

Each app's own ways are kept: codes in its case, its words of conditions, finishes and languages,
the front of a card with two faces, foils of every kind, codes of its own. Two fifths are not
English. A row is wrong where its product is another card, set, number or finish than the one it was
written from.
"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import polars as pl

import ground
from cardsync.buying.collections.collection_cells import read_rows
from cardsync.buying.collections.collection_text import TEXT_HEADER, read_text
from cardsync.buying.collections.file_formats import Recognized, recognize
from cardsync.buying.collections.match_collection import match_rows
from cardsync.platform.database.session import Database
from cardsync.platform.logs import setup_logging
from ground import Ground, Report

GAMES: Final = ["magic", "pokemon"]
Card = dict[str, Any]
Row = dict[str, str]

_CODES: Final = ("NM", "NM", "NM", "LP", "MP", "HP", "DMG")
_LANGUAGES: Final = ("English",) * 6 + ("German", "Japanese", "French", "Simplified Chinese")
_SHORT: Final = {"German": "de", "Japanese": "ja", "French": "fr", "English": "en"}


def _words(*words: str) -> dict[str, str]:
    return dict(zip(("NM", "LP", "MP", "HP", "DMG"), words, strict=True))


def manabox(card: Card) -> Row:
    ladder = _words("near_mint", "excellent", "light_played", "played", "poor")
    return {
        "Name": card["name"], "Set code": card["code"].upper(), "Set name": card["set"],
        "Collector number": card["number"], "Foil": "foil" if card["foil"] else "normal",
        "Rarity": "common", "Quantity": "1", "ManaBox ID": "1", "Scryfall ID": "",
        "Purchase price": "1.0", "Misprint": "false", "Altered": "false", "Signed": "false",
        "Condition": ladder[card["condition"]], "Language": _SHORT.get(card["language"], "zh_CN"),
        "Proxy": "false", "Purchase price currency": "USD", "Added": "",
    }  # fmt: skip


def dragon_shield(card: Card) -> Row:
    ladder = _words("NearMint", "Excellent", "LightPlayed", "Played", "Poor")
    foils = ("Foil", "Surge Foil", "Rainbow Foil", "Galaxy Foil", "Step and Compleat Foil")
    code = {"GK2": "GK2_AZORIU", "GK1": "GK1_DIMIR"}.get(card["code"], card["code"])
    return {
        "Folder Name": "A", "Quantity": "1", "Trade Quantity": "0",
        "Card Name": card["name"].partition(" // ")[0] if card["faces"] else card["name"],
        "Set Code": code, "Set Name": card["set"], "Card Number": card["number"],
        "Condition": ladder[card["condition"]],
        "Printing": card["finish"] or (foils[card["at"] % 5] if card["foil"] else "Normal"),
        "Language": card["language"], "Price Bought": "0.10", "Date Bought": "2026-01-01",
        "LOW": "", "MID": "", "MARKET": "",
    }  # fmt: skip


def moxfield(card: Card) -> Row:
    ladder = _words("Near Mint", "Good (Lightly Played)", "Played", "Heavily Played", "Damaged")
    chinese = card["language"].replace("Simplified ", "")
    return {
        "Count": "1", "Tradelist Count": "0", "Name": card["name"], "Edition": card["code"].lower(),
        "Condition": ladder[card["condition"]], "Language": chinese,
        "Foil": ("etched" if card["at"] % 9 == 0 else "foil") if card["foil"] else "", "Tags": "",
        "Last Modified": "2026-01-01", "Collector Number": card["number"], "Alter": "False",
        "Proxy": "False", "Purchase Price": "",
    }  # fmt: skip


def deckbox(card: Card) -> Row:
    ladder = _words("Near Mint", "Good (Lightly Played)", "Played", "Heavily Played", "Poor")
    chinese = card["language"].replace("Simplified ", "")
    return {
        "Count": "1", "Tradelist Count": "0", "Name": card["name"], "Edition": card["set"],
        "Edition Code": card["code"].lower(), "Card Number": card["number"],
        "Condition": ladder[card["condition"]], "Language": chinese,
        "Foil": "foil" if card["foil"] else "", "Signed": "", "My Price": "$0.20",
    }  # fmt: skip


def archidekt(card: Card) -> Row:
    ladder = _words("NM", "LP", "MP", "HP", "D")
    short = {"Simplified Chinese": "CS", "Japanese": "JP"}
    return {
        "Quantity": "1", "Name": card["name"], "Finish": "Foil" if card["foil"] else "Normal",
        "Condition": ladder[card["condition"]], "Date Added": "2026-05-15",
        "Language": short.get(card["language"], _SHORT.get(card["language"], "en").upper()),
        "Purchase Price": "", "Tags": "", "Edition Name": card["set"],
        "Edition Code": card["code"].lower(), "Multiverse Id": "0", "Scryfall ID": "",
        "Collector Number": card["number"],
    }  # fmt: skip


def tcgplayer_app(card: Card) -> Row:
    ladder = _words("Near Mint", "Lightly Played", "Moderately Played", "Heavily Played", "Damaged")
    named = (
        f"{card['name']} (Showcase)" if card["at"] % 7 == 0 and not card["finish"] else card["name"]
    )
    return {
        "Quantity": "1", "Name": named, "Simple Name": card["name"], "Set": card["set"],
        "Card Number": card["number"], "Set Code": card["code"].upper(), "External ID": "0",
        "Printing": card["finish"] or ("Foil" if card["foil"] else "Normal"),
        "Condition": ladder[card["condition"]], "Language": card["language"], "Rarity": "Common",
        "Product ID": "", "SKU": "", "Price": "$1.00", "Price Each": "$1.00",
    }  # fmt: skip


APPS: Final[dict[str, Callable[[Card], Row]]] = {
    "ManaBox": manabox,
    "Dragon Shield": dragon_shield,
    "Moxfield": moxfield,
    "Deckbox": deckbox,
    "Archidekt": archidekt,
    "TCGplayer app": tcgplayer_app,
}
# Apps of Magic alone.
_OF_MAGIC: Final = {"ManaBox", "Moxfield", "Deckbox", "Archidekt"}


def cards_of(data: Path, count: int, seed: int) -> list[Card]:
    """Return cards of the catalogs, each with what its owner says of the copy."""
    chance = random.Random(seed)
    cards: list[Card] = []
    for name, share in (("magic_xmage", 0.75), ("pokemon_tcgdex_en", 0.25)):
        catalog = pl.read_parquet(data / "catalog" / f"{name}.parquet").filter(
            pl.col("number").fill_null("") != "", pl.col("set_code").fill_null("") != ""
        )
        for row in catalog.sample(round(count * share), seed=seed).iter_rows(named=True):
            magic = row["game"] == "magic"
            foil = chance.random() < 0.3 if magic and row["finish"] is None else None
            cards.append(
                {
                    "at": len(cards), "game": row["game"], "name": row["product_name"],
                    "set": row["set_name"], "code": row["set_code"], "number": row["number"],
                    "finish": "" if foil is not None else row["finish"] or "",
                    "foil": foil or (row["finish"] or "").endswith("oil"),
                    "faces": " // " in row["product_name"],
                    "condition": chance.choice(_CODES),
                    "language": chance.choice(_LANGUAGES) if magic else "English",
                }
            )  # fmt: skip
    return cards


def written(rows: list[Row]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


_PRODUCT: Final = "SELECT id, game, set_code, number, finish FROM product WHERE NOT provisional"


async def matched(database: Database, seller_id: int, data: bytes) -> tuple[pl.DataFrame, int]:
    """Return the rows of a file as they are matched, and how many could not be read."""
    text = read_text(data)
    found = recognize(text.header) if text.header else _of_list()
    assert found is not None, text.header
    read = read_rows(text.rows, found, text.header or list(TEXT_HEADER))
    return await match_rows(database, seller_id, GAMES, read.frame), len(read.rejected)


def _of_list() -> Recognized:
    return Recognized("text", {name: [at] for at, name in enumerate(TEXT_HEADER)})


def judged(cards: list[Card], rows: pl.DataFrame, products: dict[int, Any]) -> Counter[str]:
    """Count the rows by what came of them."""
    counts: Counter[str] = Counter()
    for row in rows.iter_rows(named=True):
        card = cards[row["line"] - 2]
        if row["product_id"] is None:
            counts["unread word" if row["reason"] else row["certainty"] or "unknown"] += 1
            continue
        game, code, number, finish = products[row["product_id"]]
        same = (game, code, number) == (card["game"], card["code"], card["number"])
        its_own = finish in (None, card["finish"] or row["finish"])
        right = same and its_own and row["condition"] == card["condition"]
        counts["matched" if right and row["language"] == card["language"] else "wrong"] += 1
    return counts


def measure(data: Path, rows: int, cards: int, seed: int) -> Report:
    report = Report("Rows in six apps' forms")
    setup_logging("warning", "json")
    made_of = cards_of(data, cards, seed)
    with ground.ground(data, rows) as made:
        measured(made, report, made_of)
    return report


def measured(made: Ground, report: Report, cards: list[Card]) -> None:
    seller = made.new_seller()
    with made.admin() as connection:
        products = {id: tuple(rest) for id, *rest in connection.execute(_PRODUCT)}
    for app, write in APPS.items():
        of_app: list[Card] = [
            card for card in cards if card["game"] == "magic" or app not in _OF_MAGIC
        ]
        file = written([write(card) for card in of_app])

        async def work(database: Database, file: bytes = file) -> tuple[pl.DataFrame, int]:
            return await matched(database, seller.seller_id, file)

        frame, rejected = made.in_database(work)
        counts = judged(of_app, frame, products)
        share = 100 * counts["matched"] / len(of_app)
        rest = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        report.note(f"{app:<14} {len(of_app):,} rows: {rest}, {rejected} not read")
        report.figure(f"{app}: rows matched", share, "%")
        report.figure(f"{app}: rows wrong or not read", counts["wrong"] + rejected)


if __name__ == "__main__":
    ground.main(measure, __doc__, cards=2_400, seed=1)
