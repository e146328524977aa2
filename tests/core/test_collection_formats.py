"""Each format of a collection is recognized by its own header, in any order of columns, with any
delimiter; its rows are read, and what cannot be read is reported.
"""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.buying.collections.collection_cells import RejectedRow, read_rows
from cardsync.buying.collections.collection_text import TEXT_HEADER, read_text
from cardsync.buying.collections.file_formats import (
    Recognized,
    header_key,
    propose,
    recognize,
)
from cardsync.errors import InvalidCsv

# The headers as the apps write them; the rows are of our own making.
HEADERS = {
    "tcgplayer_app": "Quantity,Name,Simple Name,Set,Card Number,Set Code,External ID,Printing,"
    "Condition,Language,Rarity,Product ID,SKU,Price,Price Each",
    "manabox": "Name,Set code,Set name,Collector number,Foil,Rarity,Quantity,ManaBox ID,Scryfall ID,"
    "Purchase price,Misprint,Altered,Condition,Language,Purchase price currency",
    "dragon_shield_web": "Folder Name,Quantity,Trade Quantity,Card Name,Set Code,Set Name,"
    "Card Number,Condition,Printing,Language,Price Bought,Date Bought,LOW,MID,MARKET",
    "dragon_shield_app": "Quantity,Name,CardNumber,Expansion Code,Expansion Name,PurchasePrice,"
    "Foil,Condition,Language,PurchaseDate",
    "mtggoldfish": "Card,Set ID,Set Name,Quantity,Foil",
    "moxfield": "Count,Tradelist Count,Name,Edition,Condition,Language,Foil,Tags,Last Modified,"
    "Collector Number,Alter,Proxy,Purchase Price",
    "archidekt": "Quantity,Name,Finish,Condition,Date Added,Language,Purchase Price,Tags,"
    "Edition Name,Edition Code,Multiverse Id,Scryfall ID,MTGO ID,Collector Number",
    "deckbox": "Count,Tradelist Count,Name,Edition,Edition Code,Card Number,Condition,Language,"
    "Foil,Signed,Artist Proof,Altered Art,Misprint,Promo,Textless,My Price",
    "collectr": "Portfolio Name,Category,Set,Product Name,Card Number,Rarity,Variance,Grade,"
    "Card Condition,Average Cost Paid,Quantity,Market Price (As of 2026-10-08),Price Override,"
    "Watchlist,Date Added,Notes",
    "pricing_export": "TCGplayer Id,Product Line,Set Name,Product Name,Title,Number,Rarity,"
    "Condition,TCG Market Price,TCG Direct Low,TCG Low Price With Shipping,TCG Low Price,"
    "Total Quantity,Add to Quantity,TCG Marketplace Price,Photo URL",
}
# What each format writes for three rows, by the names of our own fields.
CARDS = [
    {
        "copies": 4,
        "name": "Alacrian Jaguar",
        "number": "152",
        "finish": "Normal",
        "condition": "NM",
    },
    {"copies": 1, "name": "Air Response Unit", "number": "7", "finish": "Foil", "condition": "LP"},
    {
        "copies": 2,
        "name": "Aatchik, Radian",
        "number": "187",
        "finish": "Normal",
        "condition": "HP",
    },
]
FOIL = {
    "manabox": ("normal", "foil"),
    "dragon_shield_app": ("false", "true"),
    "mtggoldfish": ("REGULAR", "FOIL"),
    "moxfield": ("", "foil"),
    "deckbox": ("", "foil"),
}
CONDITION = {
    "manabox": {"NM": "near_mint", "LP": "light_played", "HP": "played"},
    "dragon_shield_web": {"NM": "NearMint", "LP": "LightPlayed", "HP": "Played"},
    "deckbox": {"NM": "Near Mint", "LP": "Good (Lightly Played)", "HP": "Heavily Played"},
    "archidekt": {"NM": "NM", "LP": "LP", "HP": "HP"},
}
LONG = {"NM": "Near Mint", "LP": "Lightly Played", "HP": "Heavily Played"}


def cells_of(key: str, card: dict) -> dict[str, str]:
    plain, foil = FOIL.get(key, ("Normal", "Foil"))
    finish = foil if card["finish"] == "Foil" else plain
    condition = CONDITION.get(key, LONG)[card["condition"]]
    if key == "pricing_export":
        condition += " Foil" if finish == "Foil" else ""
    return {
        "Quantity": str(card["copies"]),
        "Total Quantity": str(card["copies"]),
        "Count": str(card["copies"]),
        **dict.fromkeys(("Name", "Card Name", "Card", "Product Name"), card["name"]),
        **dict.fromkeys(
            ("Card Number", "Collector number", "Collector Number", "CardNumber", "Number"),
            card["number"],
        ),
        **dict.fromkeys(("Set", "Set Name", "Set name", "Expansion Name", "Edition Name"), "Aetherdrift"),
        **dict.fromkeys(("Set Code", "Set code", "Set ID", "Expansion Code", "Edition Code"), "DFT"),
        "Edition": "DFT" if key == "moxfield" else "Aetherdrift",
        **dict.fromkeys(("Foil", "Printing", "Finish", "Variance"), finish),
        **dict.fromkeys(("Condition", "Card Condition"), condition),
        "Language": "EN" if key == "archidekt" else "English",
        "Grade": "Ungraded",
        "Category": "Magic: The Gathering",
        "Product Line": "Magic",
        "SKU": "8123",
        "TCGplayer Id": "8123",
        "Price Each": "$1.25",
    }  # fmt: skip


def a_file(key: str, delimiter: str = ",", order: list[str] | None = None) -> str:
    names = order or HEADERS[key].split(",")
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(names)
    for card in CARDS:
        cells = cells_of(key, card)
        writer.writerow([cells.get(name, "") for name in names])
    return out.getvalue()


def read(data: bytes):
    text = read_text(data)
    found = recognize(text.header)
    assert found is not None
    return found, read_rows(text.rows, found, text.header)


def plain(key: str) -> list[tuple]:
    """The rows as they are read; MTGGoldfish has neither condition nor number."""
    bare = key == "mtggoldfish"
    return [
        (
            card["copies"],
            card["name"],
            "" if bare else card["number"],
            card["finish"],
            "NM" if bare else card["condition"],
            "English",
        )
        for card in CARDS
    ]


WORTH = ("copies", "name", "number", "finish", "condition", "language")


@pytest.mark.parametrize("key", HEADERS)
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b'"sep=,"\r\n', b"sep=,\n"])
def test_each_format_is_recognized_and_read(key, before):
    found, rows = read(before + a_file(key).encode())
    assert (found.key, rows.rejected) == (key, [])
    assert rows.frame.select(WORTH).rows() == plain(key)
    set_name, set_code = rows.frame.select("set_name", "set_code").row(0)
    assert "Aetherdrift" in (set_name, "Aetherdrift" if set_code == "DFT" else "")


@given(st.sampled_from(sorted(HEADERS)), st.sampled_from(",;\t"), st.randoms(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_order_any_delimiter_and_more_columns_read_the_same(key, delimiter, chance, utf16):
    names = [*HEADERS[key].split(","), "My notes", "Shelf"]
    chance.shuffle(names)
    text = a_file(key, delimiter, names)
    found, rows = read(text.encode("utf-16" if utf16 else "utf-8"))
    assert (found.key, rows.rejected) == (key, [])
    assert rows.frame.select(WORTH).rows() == plain(key)


def test_plain_text_is_read_line_by_line():
    text = read_text(
        b"Deck\n4 Alacrian Jaguar (DFT) 152 *F*\n2x Air Response Unit\n\n// mine\n"
        b"1 Borrowing 100,000 Arrows (PLS) 25\nno copies here\nSideboard\n3 Fire // Ice (MH2) 290\n"
    )
    rows = read_rows(
        text.rows, Recognized("text", dict(zip(TEXT_HEADER, range(5), strict=False))), TEXT_HEADER
    )
    assert rows.frame.select("row", "copies", "name", "set_code", "number", "finish").rows() == [
        (2, 4, "Alacrian Jaguar", "DFT", "152", "Foil"),
        (3, 2, "Air Response Unit", "", "", "Normal"),
        (6, 1, "Borrowing 100,000 Arrows", "PLS", "25", "Normal"),
        (9, 3, "Fire // Ice", "MH2", "290", "Normal"),
    ]
    assert rows.rejected == [RejectedRow(7, "", "must be like “4 Name (SET) 123”")]


def test_what_cannot_be_read_is_reported_with_line_column_and_reason():
    head = b"Name,Set code,Set name,Collector number,Foil,Quantity,ManaBox ID,Condition,Language\n"
    _, rows = read(
        head
        + b"Bolt,M10,Magic 2010,146,normal,two,1,near_mint,en\n"
        + b",M10,Magic 2010,146,normal,1,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,shiny,1,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,chewed,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,near_mint,en,more\n"
        + b"Bolt,M10,Magic 2010,146,normal,0,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,near_mint,en\n"
    )
    assert [(one.line, one.column, one.reason) for one in rows.rejected] == [
        (2, "Quantity", "must be a whole number, not 'two'"),
        (3, "Name", "is empty"),
        (4, "Foil", "'shiny' is not a known finish"),
        (5, "Condition", "'chewed' is not a known condition"),
        (6, "", "has 10 cells, the header has 9"),
    ]
    assert (rows.empty, rows.frame["row"].to_list()) == (1, [8])


def test_an_unknown_header_gets_a_proposal_by_names_and_samples():
    header = ["Menge", "Titel der Karte", "Sprache", "Kennung"]
    samples = [
        ["4", "Alacrian Jaguar", "de", "fff440c0-7e6a-46c2-9989-f1b5af20fd44"],
        ["1", "Air Response Unit", "en", "a20c5a55-1e8b-4f92-b6f1-e7e1a8a1b4d3"],
    ]
    assert recognize(header) is None
    assert propose(header, samples) == {
        "copies": 0,
        "name": 1,
        "language": 2,
        "scryfall_id": 3,
    }


def test_a_header_in_another_order_has_the_same_key():
    assert header_key(["Menge", "Titel"]) == header_key(["titel ", "MENGE"])
    assert header_key(["Menge"]) != header_key(["Titel"])


@pytest.mark.parametrize("empty", [b"", b"\xef\xbb\xbf", b"sep=;\n", b"\r\n\r\n"])
def test_a_file_without_a_line_is_refused(empty):
    with pytest.raises(InvalidCsv):
        read_text(empty)


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    try:
        text = read_text(data)
    except InvalidCsv:
        return
    found = recognize(text.header)
    if found is not None:
        read_rows(text.rows, found, text.header)
