"""Each format of a collection is recognized by its own header, in any order of columns, with any
delimiter; its rows are read, and what cannot be read is reported.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.buying.collections.app_words import (
    LADDERS,
    condition_of,
    finish_of,
    ladder_of,
    language_of,
    printings_of_word,
)
from cardsync.buying.collections.collection_cells import RejectedRow, read_rows
from cardsync.buying.collections.collection_text import TEXT_HEADER, read_text
from cardsync.buying.collections.commands import _told as told_of
from cardsync.buying.collections.file_formats import (
    BY_KEY,
    Recognized,
    docs_table,
    header_key,
    propose,
    recognize,
)
from cardsync.buying.collections.list_lines import read_line
from cardsync.platform.errors import InvalidCsv

# A file of each app as it writes it, and what is read of it: copies, name, set, code, number, finish,
# condition and language. The rows are of our own making.
SAMPLES = {
    "archidekt": (
        ("Quantity,Name,Finish,Condition,Date Added,Language,Purchase Price,Tags,Edition Name,"
        "Edition Code,Multiverse Id,Scryfall ID,MTGO ID,Collector Number\n"
        "4,Bolt,Normal,NM,2026-05-15,EN,,,Magic 2011,m11,0,,,149\n"
        "1,Bolt,Etched,D,2026-05-15,CT,,,Magic 2011,m11,0,,,149\n"),
        [
            (4, "Bolt", "Magic 2011", "m11", "149", "Normal", "NM", "English"),
            (1, "Bolt", "Magic 2011", "m11", "149", "Foil", "DMG", "Traditional Chinese"),
        ],
    ),
    "card_kingdom": (
        "title,edition,foil,quantity\nBolt,Magic 2011,FALSE,4\nBolt,Magic 2011,TRUE,1\n",
        [
            (4, "Bolt", "Magic 2011", "", "", "Normal", "NM", "English"),
            (1, "Bolt", "Magic 2011", "", "", "Foil", "NM", "English"),
        ],
    ),
    "cardmarket_articles": (
        ("idArticle;idProduct;English Name;Local Name;Exp.;Exp. Name;Price;Language;Condition;Foil?;"
        "Amount\n1;22;Bolt;Blitz;M11;Magic 2011;1.2;3;EX;X;4\n1;22;Bolt;Bolt;M11;Magic 2011;1;1;PL;;1\n"),
        [
            (4, "Bolt", "Magic 2011", "M11", "", "Foil", "LP", "German"),
            (1, "Bolt", "Magic 2011", "M11", "", "Nonfoil", "HP", "English"),
        ],
    ),
    "cardmarket_stock": (
        ("idProduct;groupCount;price;idLanguage;condition;isFoil;isSigned;isAltered;isPlayset;"
        "isReverseHolo;isFirstEd;isFullArt;isUberRare;isWithDie\n"
        "743311;2;;7;5;1;;;;;;;;\n715954;1;12.00;1;2;;;;;;;;;\n"),
        [
            (2, "", "", "", "", "Foil", "MP", "Japanese"),
            (1, "", "", "", "", "Nonfoil", "NM", "English"),
        ],
    ),
    "cardnexus": (
        ("totalQtyOwned,name,printNumber,finish,variant,expansion,game,condition,language,price\n"
        "2,Fury Rune,007a,Foil,,Origins,Riftbound: League of Legends TCG,Near Mint,en,\n"),
        [(2, "Fury Rune", "Origins", "", "007a", "Foil", "NM", "English")],
    ),
    "cardtrader": (
        ("Game,Set Released At,Set Name,Set Code,Item Name,Price in EUR Cents,Quantity,Condition,"
        "Language,Foil/Reverse,Signed,Altered,First Edition,Playset,Collector Number\n"
        "Magic: the Gathering,2010-07-16,Magic 2011,M11,Bolt,120,2,Slightly Played,it,True,False,"
        "False,,False,149\n"),
        [(2, "Bolt", "Magic 2011", "M11", "149", "Foil", "LP", "Italian")],
    ),
    "collectr": (
        ("Portfolio Name,Category,Set,Product Name,Card Number,Rarity,Variance,Grade,Card Condition,"
        "Average Cost Paid,Quantity,Market Price (As of 2026-10-08),Price Override,Watchlist,"
        "Date Added,Notes\n"
        "Main,Pokémon,Base Set,Charizard,4/102,Rare Holo,Holofoil,Ungraded,Lightly Played,280,1,300,"
        "0,false,2024-01-10,\n"
        "Main,Lorcana,The First Chapter,Elsa,6,Promo,Cold Foil,Ungraded,Near Mint,0,2,7.12,0,false,,\n"),
        [
            (1, "Charizard", "Base Set", "", "4/102", "Holofoil", "LP", "English"),
            (2, "Elsa", "The First Chapter", "", "6", "Cold Foil", "NM", "English"),
        ],
    ),
    "deckbox": (
        ("Count,Tradelist Count,Name,Edition,Edition Code,Card Number,Condition,Language,Foil,Signed,"
        "Artist Proof,Altered Art,Misprint,Promo,Textless,Printing Id,Printing Note,Tags,My Price\n"
        '4,4,Bolt,Magic 2011,m11,149,Good (Lightly Played),English,foil,,,,,,,1,,"",$0.20\n'
        '1,0,Bolt,Magic 2011,m11,149,Played,Chinese,,,,,,,,1,,"",\n'
        '1,0,Bolt,Magic 2011,m11,149,,,,,,,,,,1,,"",\n'),
        [
            (4, "Bolt", "Magic 2011", "m11", "149", "Foil", "LP", "English"),
            (1, "Bolt", "Magic 2011", "m11", "149", "Normal", "MP", "Simplified Chinese"),
            (1, "Bolt", "Magic 2011", "m11", "149", "Normal", "NM", "English"),
        ],
    ),
    "decked_builder": (
        ("Total Qty,Reg Qty,Foil Qty,Card,Set,Mana Cost,Card Type,Color,Rarity,Mvid,Single Price,"
        "Single Foil Price,Total Price,Price Source,Notes\n"
        "3,2,1,Bolt,Magic 2011,R,Instant,Red,Common,1,,,,TCGplayer Market,\n"),
        [
            (2, "Bolt", "Magic 2011", "", "", "Normal", "NM", "English"),
            (1, "Bolt", "Magic 2011", "", "", "Foil", "NM", "English"),
        ],
    ),
    "delver_lens": (
        ('"QuantityX","Name","Edition","Edition code","Collector\'s number","Foil","Condition",'
        '"Language"\n"2x","Bolt","Magic 2011","M11","149","Foil","Near Mint",""\n'),
        [(2, "Bolt", "Magic 2011", "M11", "149", "Foil", "NM", "English")],
    ),
    "dragon_shield_app": (
        ("Quantity, Name, CardNumber, Expansion Code, Expansion Name, PurchasePrice, Foil, Condition,"
        " Language, PurchaseDate\n1, Bolt, 149, m11, Magic 2011, 0.1, true, LightPlayed, German,"
        " 20220129\n"),
        [(1, "Bolt", "Magic 2011", "m11", "149", "Foil", "MP", "German")],
    ),
    "dragon_shield_web": (
        ('"sep=,"\nFolder Name,Quantity,Trade Quantity,Card Name,Set Code,Set Name,Card Number,'
        "Condition,Printing,Language,Price Bought,Date Bought,AVG,LOW,TREND\n"
        "Other,1,0,Bolt,M11,Magic 2011,149,Excellent,Normal,German,0.25,2022-01-29,0.01,0.01,0.02\n"
        "Other,2,0,Bolt,M11,Magic 2011,149,Mint,Rainbow Foil,English,0.25,2022-01-29,,,\n"),
        [
            (1, "Bolt", "Magic 2011", "M11", "149", "Normal", "LP", "German"),
            (2, "Bolt", "Magic 2011", "M11", "149", "Rainbow Foil", "NM", "English"),
        ],
    ),
    "deckstats": (
        ("amount,card_name,is_foil,is_pinned,is_signed,set_id,set_code,collector_number,language,"
        'condition,comment,added\n1,"Bolt",1,,,147,"M11","149","de",NM,,\n'),
        [(1, "Bolt", "", "M11", "149", "Foil", "NM", "German")],
    ),
    "mtg_manager": (
        ("Quantity,Name,Code,PurchasePrice,Foil,Condition,Language,PurchaseDate\n"
        '1,"Bolt",M11,18.04,0,2,0,5/6/2018\n'),
        [(1, "Bolt", "", "M11", "", "Normal", "LP", "English")],
    ),
    "mtgstocks": (
        ('"Card","Set","Quantity","Price","Condition","Language","Foil","Signed"\n'
        '"Bolt","Magic 2011",3,0.35,M,en,Yes,No\n'),
        [(3, "Bolt", "Magic 2011", "", "", "Foil", "NM", "English")],
    ),
    "dreamborn": (
        ("Set Number,Card Number,Variant,Count,Name,Color,Rarity\n"
        '011,191,foil,1,"Angel - Experiment 624",Amber,Rare\n011,191,normal,4,,,\n'),
        [
            (1, "Angel - Experiment 624", "", "011", "191", "Foil", "NM", "English"),
            (4, "", "", "011", "191", "Normal", "NM", "English"),
        ],
    ),
    "dreamborn_counts": (
        ("Normal,Foil,Name,Set,Card Number,Color,Rarity,Price,Foil Price\n"
        "3,2,Te Kā - The Burning One,The First Chapter,130,Ruby,Legendary,1,2\n"),
        [
            (3, "Te Kā - The Burning One", "The First Chapter", "", "130", "Normal", "NM", "English"),
            (2, "Te Kā - The Burning One", "The First Chapter", "", "130", "Foil", "NM", "English"),
        ],
    ),
    "echomtg": (
        ("Reg Qty,Foil Qty,Name,Set,Rarity,Acquired,Language,Date Acquired,Set Code,"
        "Collector Number,Condition,Marked as Trade,note,echo_inventory_id,tcgid,echoid\n"
        "1,2,Bolt,Magic 2011,C,1.00,EN,2026-01-01,M11,149,LP,0,,1,2,3\n"),
        [
            (1, "Bolt", "Magic 2011", "M11", "149", "Normal", "LP", "English"),
            (2, "Bolt", "Magic 2011", "M11", "149", "Foil", "LP", "English"),
        ],
    ),
    "helvault": (
        ("collector_number,estimated_price,extras,language,name,oracle_id,quantity,rarity,"
        'scryfall_id,set_code,set_name\n"149","1","etchedFoil","ja","Bolt","o","2","common","",'
        '"m11","Magic 2011"\n"149","1","","en","Bolt","o","1","common","","m11","Magic 2011"\n'),
        [
            (2, "Bolt", "Magic 2011", "m11", "149", "Foil", "NM", "Japanese"),
            (1, "Bolt", "Magic 2011", "m11", "149", "Normal", "NM", "English"),
        ],
    ),
    "mana_pool": (
        ("product_type,product_id,name,set,number,rarity,language,finish,condition,price,market_low,"
        "market_price,market_price_foil,quantity\nmtg_single,uuid,Bolt,M11,149,C,EN,FO,NM,1,1,1,1,3\n"),
        [(3, "Bolt", "", "M11", "149", "Foil", "NM", "English")],
    ),
    "manabox": (
        ("Name,Set code,Set name,Collector number,Foil,Rarity,Quantity,ManaBox ID,Scryfall ID,"
        "Purchase price,Misprint,Altered,Signed,Condition,Language,Proxy,Purchase price currency,"
        "Added\nBolt,M11,Magic 2011,149,etched,common,1,1,,1.0,false,false,false,good,zh_CN,false,USD,\n"),
        [(1, "Bolt", "Magic 2011", "M11", "149", "Foil", "MP", "Simplified Chinese")],
    ),
    "moxfield": (
        ('"Count","Tradelist Count","Name","Edition","Condition","Language","Foil","Tags",'
        '"Last Modified","Collector Number","Alter","Proxy","Purchase Price"\n'
        '"1","1","Bolt","m11","Good (Lightly Played)","Traditional Chinese","foil","","","149",'
        '"False","False",""\n"2","0","Bolt","m11","Played","English","","","","149","False","False",""\n'),
        [
            (1, "Bolt", "", "m11", "149", "Foil", "LP", "Traditional Chinese"),
            (2, "Bolt", "", "m11", "149", "Normal", "MP", "English"),
        ],
    ),
    "mtggoldfish": (
        ("Card,Set ID,Set Name,Quantity,Foil,Variation,Collector Number,Scryfall ID\n"
        'Bolt,M11,Magic 2011,3,foil_etched,"",149,\nGate,RNA,Ravnica Allegiance,1,regular,"243",,\n'
        'Bolt,M11,Magic 2011,1,REGULAR,"showcase",,\n'),
        [
            (3, "Bolt", "Magic 2011", "M11", "149", "Foil", "NM", "English"),
            (1, "Gate", "Ravnica Allegiance", "RNA", "243", "Normal", "NM", "English"),
            (1, "Bolt (showcase)", "Magic 2011", "M11", "", "Normal", "NM", "English"),
        ],
    ),
    "mtgo": (
        ("Card Name,Quantity,ID #,Rarity,Set,Collector #,Premium,Sideboarded,Annotation\n"
        '"Dark Ritual",1,6893,Common,MI,116/350,Yes,No,0\n'),
        [(1, "Dark Ritual", "", "MI", "116/350", "Foil", "NM", "English")],
    ),
    "piltover_archive": (
        ("Variant Number,Card Name,Set,Set Prefix,Rarity,Variant Type,Variant Label,Foil,Quantity,"
        "Language,Condition,Grading Company,Grading Value,Grading Label,Notes\n"
        "OGN-007a,Fury Rune,Origins,OGN,Common,Standard,Alternate Art,true,2,English,Near Mint,,,,\n"
        "SFD-154-Foil,Guards!,Spiritforged,SFD,Common,Standard,Standard,false,1,English,,,,,\n"),
        [
            (2, "Fury Rune", "Origins", "OGN", "007a", "Foil", "NM", "English"),
            (1, "Guards!", "Spiritforged", "SFD", "154", "Normal", "NM", "English"),
        ],
    ),
    "pricing_export": (
        ("TCGplayer Id,Product Line,Set Name,Product Name,Title,Number,Rarity,Condition,"
        "TCG Market Price,TCG Direct Low,TCG Low Price With Shipping,TCG Low Price,Total Quantity,"
        "Add to Quantity,TCG Marketplace Price,Photo URL\n"
        '9,Magic,Magic 2011,Bolt,,149,C,Lightly Played Foil - German,1,,,,3,0,1,\n'
        '8,Magic,Magic 2011,Bolt,,149,C,Near Mint,1,,,,,2,1,\n'),
        [
            (3, "Bolt", "Magic 2011", "", "149", "Foil", "LP", "German"),
            (2, "Bolt", "Magic 2011", "", "149", "Normal", "NM", "English"),
        ],
    ),
    "riftbound_gg": (
        "CardId,Normal,Foil,Name,Set\nOGN-007,2,1,Fury Rune,Origins\n",
        [
            (2, "Fury Rune", "Origins", "OGN", "007", "Normal", "NM", "English"),
            (1, "Fury Rune", "Origins", "OGN", "007", "Foil", "NM", "English"),
        ],
    ),
    "riftmana": (
        ("Normal Qty,Foil Qty,Card Name,Card ID,Set,Color,Rarity,Normal Price,Foil Price,"
        "Normal Condition,Foil Condition,Notes,Language\n1,0,Fury Rune,OGN-007,Origins,,,,,NM:1,,,English\n"),
        [(1, "Fury Rune", "Origins", "OGN", "007", "Normal", "NM", "English")],
    ),
    "sorted": (
        ('"sep=,"\nList Type,List Name,Collection,Format,Board,Quantity,Card Name,Set Code,Set Name,'
        "Card Number,Condition,Printing,Rarity,Language,Price Bought,Date Bought\n"
        "Folder,Box 1,Yes,,,1,Bolt,M11,Magic 2011,149,LightPlayed,Etched,C,jp,,\n"),
        [(1, "Bolt", "Magic 2011", "M11", "149", "Foil", "MP", "Japanese")],
    ),
    "super_rift_deck": (
        ("CardId,Variant,Name,Set,SetPrefix,CollectorNumber,Rarity,Type,Supertype,Domain,Energy,"
        "Might,QuantityNormal,QuantityFoil\nOGN-007,Standard,Fury Rune,Origins,OGN,007,,,,,,,0,3\n"),
        [(3, "Fury Rune", "Origins", "OGN", "007", "Foil", "NM", "English")],
    ),
    "tcg_powertools": (
        ("idProduct,quantity,name,set,condition,language,isFoil,isPlayset,isSigned,isFirstEd,price,"
        "comment\n260009,1,Totally Lost,Gatecrash,GD,German,true,true,,,1000,\n"),
        [(1, "Totally Lost", "Gatecrash", "", "", "Foil", "MP", "German")],
    ),
    "tcgplayer_app": (
        ("Quantity,Name,Simple Name,Set,Card Number,Set Code,External ID,Printing,Condition,Language,"
        "Rarity,Product ID,SKU,Price,Price Each\n"
        "1,Bolt (Showcase),Bolt,Magic 2011,149,M11,0,Foil,Moderately Played,French,C,1,2,$1,$1\n"),
        [(1, "Bolt (Showcase)", "Magic 2011", "M11", "149", "Foil", "MP", "French")],
    ),
    "tcgplayer_app_present": (
        ("Product ID,TCGplayer Id,Product Line,Set Name,Product Name,Title,Number,Rarity,Condition,"
        "Printing,TCG Market Price,TCG Direct Low,TCG Low Price With Shipping,TCG Low Price,"
        "Total Quantity,Add to Quantity,TCG Marketplace Price,Photo URL\n"
        "226618,9012345,Pokémon,Base Set,Pikachu,,58,Common,Near Mint,Normal,3.27,,,,,2,,\n"
        "226618,9012345,Pokémon (Japan),Base Set,Pikachu,,58,Common,Damaged,Holofoil,3.27,,,,1,0,,\n"),
        [
            (2, "Pikachu", "Base Set", "", "58", "Normal", "NM", "English"),
            (1, "Pikachu", "Base Set", "", "58", "Holofoil", "DMG", "English"),
        ],
    ),
    "topdecked": (
        ('QUANTITY,"NAME",SETCODE,"SETNAME","COLLECTOR NUMBER",FINISH,PRICE,RARITY,ID,ACQUIRED DATE,'
        "ACQUIRED PRICE,LANG,PRICE SALE,SIGNING,ALTERATION,CONDITION,NOTES,TAGS\n"
        '1,"Bolt",m11,"Magic 2011",149,nonfoil,€0.04,common,,2023-04-11,,zht,,,,slightly played\n'),
        [(1, "Bolt", "Magic 2011", "m11", "149", "Normal", "LP", "Traditional Chinese")],
    ),
    "urzas_gatherer": (
        ("Name,Type,Color,Rarity,Author,Power,Toughness,Mana cost,Converted mana cost,Count,"
        "Foil count,Special foil count,Price,Foil price,Number,Set,ID,Multiverse ID,Comments,"
        "To trade,Condition,Grading,Languages,TCG ID,Cardmarket ID\n"
        "Bolt,Instant,Red,Common,A,,,R,1,2,1,1,1,2,149,Magic 2011,1,2,,0,,,,,\n"),
        [
            (2, "Bolt", "Magic 2011", "", "149", "Normal", "NM", "English"),
            (2, "Bolt", "Magic 2011", "", "149", "Foil", "NM", "English"),
        ],
    ),
}  # fmt: skip
SAID = ("copies", "name", "set_name", "set_code", "number", "finish", "condition", "language")


def read(data: bytes):
    text = read_text(data)
    found = recognize(text.header)
    assert found is not None
    return found, read_rows(text.rows, found, text.header)


def test_each_declared_format_has_a_sample():
    assert SAMPLES.keys() == BY_KEY.keys()
    assert all(one.seen for one in BY_KEY.values())


@pytest.mark.parametrize("key", SAMPLES)
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
def test_each_format_is_recognized_and_read(key, before):
    text, expected = SAMPLES[key]
    found, rows = read(before + text.encode())
    assert (found.key, rows.rejected, rows.empty) == (key, [], 0)
    assert rows.frame.select(SAID).rows() == expected
    assert not rows.frame["left_out"].any()
    assert rows.frame["reason"].to_list() == [""] * len(expected)


@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(",;\t"), st.randoms(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_order_any_delimiter_and_more_columns_read_the_same(key, delimiter, chance, utf16):
    text, expected = SAMPLES[key]
    lines = text.removeprefix('"sep=,"\n')
    table = list(
        csv.reader(io.StringIO(lines), delimiter=";" if key.startswith("cardmarket") else ",")
    )
    width = len(table[0])
    wide = [[*row, *[""] * (width - len(row)), "", ""] for row in table]
    wide[0][-2:] = ["My notes", "Shelf"]
    order = list(range(width + 2))
    chance.shuffle(order)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([row[at] for at in order] for row in wide)
    found, rows = read(out.getvalue().encode("utf-16" if utf16 else "utf-8"))
    assert (found.key, rows.rejected) == (key, [])
    assert rows.frame.select(SAID).rows() == expected


CODES = ("NM", "LP", "MP", "HP", "DMG")


@pytest.mark.parametrize("ladder", LADDERS)
def test_a_worse_word_of_a_ladder_never_has_a_better_condition(ladder):
    of_words = [code for code, words in LADDERS[ladder].items() for _ in words]
    assert of_words == sorted(of_words, key=CODES.index)
    read = [
        condition_of(word, ladder, {}).code for words in LADDERS[ladder].values() for word in words
    ]
    assert read == of_words


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (("MT", "NM", "EX", "GD", "LP", "PL", "PO"), ("NM", "NM", "LP", "MP", "MP", "HP", "DMG")),
        (("NM", "LP", "MP", "HP", "DMG"), CODES),
        (("near_mint", "excellent", "light_played"), ("NM", "LP", "MP")),
        (("Near Mint", "Lightly Played", "Damaged"), ("NM", "LP", "DMG")),
        (("Mint", "Good", "Moderately Played"), ("NM", "MP", "MP")),
    ],
)
def test_a_column_without_a_format_has_the_ladder_of_its_words(words, codes):
    ladder = ladder_of(words)
    assert tuple(condition_of(word, ladder, {}).code for word in words) == codes


@pytest.mark.parametrize(
    ("word", "language"),
    [
        *((word, "Simplified Chinese") for word in
          ("S-Chinese", "Chinese (S)", "zhs", "zh_CN", "Chinese Simplified", "CS", "cn", "Chinese")),
        *((word, "Traditional Chinese") for word in
          ("T-Chinese", "Chinese (T)", "zht", "zh_TW", "Chinese Traditional", "CT", "tw")),
        ("Phyrexian", "Phyrexian"), ("ph", "Phyrexian"), ("Hebrew", "Hebrew"), ("la", "Latin"),
        ("Sanskrit", "Sanskrit"), ("grc", "Ancient Greek"), ("Arabic", "Arabic"),
        ("sp", "Spanish"), ("jp", "Japanese"), ("Français", "French"), ("", "English"),
    ],
)  # fmt: skip
def test_languages_are_read_in_every_way_of_writing_them(word, language):
    assert language_of(word, {}) == language


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("regular", "Normal"), ("nonfoil", "Normal"), ("False", "Normal"), ("", ""),
        ("FOIL_ETCHED", "Foil"), ("True", "Foil"), ("etched", "Foil"), ("Surge Foil", "Surge Foil"),
        ("Step and Compleat Foil", "Step and Compleat Foil"), ("Reverse Holo", "Reverse Holofoil"),
    ],
)  # fmt: skip
def test_what_ends_in_foil_is_a_foil(word, finish):
    assert finish_of(word, {}) == finish
    in_magic = printings_of_word(finish, "magic")
    assert in_magic == (["Foil"] if finish.lower().endswith("foil") else [finish])


@pytest.mark.parametrize(
    ("finish", "game", "printings"),
    [
        ("Rainbow Foil", "flesh_and_blood", ["Rainbow Foil"]),
        ("Rainbow Foil", "magic", ["Foil"]),
        ("Foil", "lorcana", ["Cold Foil", "Holofoil"]),
        ("Cosmos Holofoil", "pokemon", ["Cosmos Holofoil"]),
        ("Normal", "pokemon", ["Normal"]),
        ("", "pokemon", [""]),
        ("Nonfoil", "magic", ["Normal"]),
        ("Nonfoil", "pokemon", [""]),
    ],
)
def test_a_foil_is_one_of_its_games_own(finish, game, printings):
    assert printings_of_word(finish, game) == printings


LIST = """Deck
4 Ragavan, Nimble Pilferer [MH2] (F)
1 Lightning Bolt (M11) 149 Foil
1 Lightning Bolt (M11) 149 NM
2 Ragavan, Nimble Pilferer (MUL)
// mine

Sideboard (3)
SB: 3 Duress
Sol Ring
[C18#222] Sol Ring
4x Sol Ring <280> [CLB] (F)
1x Sol Ring (c18) 222 [Ramp{top}] ^Have,#37d67a^
1x Sol Ring (c18) 222 *E* #tag #!global
1 Brazen Borrower // Petty Theft (ELD) 39 *F*
Creatures: 24
Arcane Signet x2
1 Pikachu ex SSP 57
1 Borrowing 100,000 Arrows (PTK) 37
1 Lim-Dûl's Vault (ALL) 107 (Near Mint) (German)
1 +2 Mace (AFR) 1
3 Plains (267)
1 Demonic Tutor (PLST) DDC-49
1 Isperia, Supreme Judge (GK2_AZORIU) 1
"""


def of_list(text: str):
    found = read_text(text.encode())
    assert found.header == []
    columns = {name: [at] for at, name in enumerate(TEXT_HEADER)}
    return read_rows(found.rows, Recognized("text", columns), TEXT_HEADER)


def test_a_list_is_read_line_by_line():
    said = of_list(LIST).frame.select(
        "row", "copies", "name", "set_code", "number", "finish", "condition", "language"
    )
    plain = ("", "NM", "English")
    foil = ("Foil", "NM", "English")
    assert said.rows() == [
        (2, 4, "Ragavan, Nimble Pilferer", "MH2", "", *foil),
        (3, 1, "Lightning Bolt", "M11", "149", *foil),
        (4, 1, "Lightning Bolt", "M11", "149", *plain),
        (5, 2, "Ragavan, Nimble Pilferer", "MUL", "", *plain),
        (9, 3, "Duress", "", "", *plain),
        (10, 1, "Sol Ring", "", "", *plain),
        (11, 1, "Sol Ring", "C18", "222", *plain),
        (12, 4, "Sol Ring", "CLB", "280", *foil),
        (13, 1, "Sol Ring", "c18", "222", *plain),
        (14, 1, "Sol Ring", "c18", "222", *foil),
        (15, 1, "Brazen Borrower // Petty Theft", "ELD", "39", *foil),
        (17, 2, "Arcane Signet", "", "", *plain),
        (18, 1, "Pikachu ex", "SSP", "57", *plain),
        (19, 1, "Borrowing 100,000 Arrows", "PTK", "37", *plain),
        (20, 1, "Lim-Dûl's Vault", "ALL", "107", "", "NM", "German"),
        (21, 1, "+2 Mace", "AFR", "1", *plain),
        (22, 3, "Plains", "", "267", *plain),
        (23, 1, "Demonic Tutor", "PLST", "DDC-49", *plain),
        (24, 1, "Isperia, Supreme Judge", "GK2_AZORIU", "1", *plain),
    ]


@pytest.mark.parametrize(
    "first",
    [
        "Ragavan, Nimble Pilferer",
        "Fire, Ice",
        "4 Ragavan, Nimble Pilferer",
        "SB: 1 Fire, Ice; Rain",
    ],
)
def test_a_list_of_names_with_commas_is_no_table(first):
    assert of_list(f"{first}\nSol Ring\n").frame["copies"].len() == 2


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("3 [M11:149] Bolt", ("3", "Bolt", "M11", "149", "")),
        ("1x Bolt (M11:149) *F* *CMDR*", ("1", "Bolt", "M11", "149", "foil")),
        ("1x Bolt (M11) *f-etch*", ("1", "Bolt", "M11", "", "foil")),
        ("4 Bolt|M11|1", ("4", "Bolt", "M11", "", "")),
        ("1 Bolt (M11) #149 # mine", ("1", "Bolt", "M11", "149", "")),
        ("1 Bolt (M11) 149 (E)", ("1", "Bolt", "M11", "149", "etched")),
        ("1 Bolt (M11) 149 *A*", ("1", "Bolt", "M11", "149", "")),
        ("1 Bolt <extended> [M11] (F)", ("1", "Bolt", "M11", "", "foil")),
        ("1 Bolt [Burn]", ("1", "Bolt", "", "", "")),
        ("1 Bolt [Magic 2011] (F)", ("1", "Bolt", "", "", "foil")),
        ("1 Bolt (Magic 2011) #149", ("1", "Bolt (Magic 2011)", "", "149", "")),
        ("1 Bolt - 125/197", ("1", "Bolt", "", "125/197", "")),
        ("1 Bolt <149> [M11] (FE)", ("1", "Bolt", "M11", "149", "etched")),
        ("1 Hymn to Tourach [FE]", ("1", "Hymn to Tourach", "FE", "", "")),
        ("4 x Bolt", ("4", "Bolt", "", "", "")),
        ("Bolt (4)", ("4", "Bolt", "", "", "")),
        ("- 2 Bolt - $1.20", ("2", "Bolt", "", "", "")),
        ("1 Mewtwo EX", ("1", "Mewtwo EX", "", "", "")),
        ("1 Umbreon V SWSH7 94", ("1", "Umbreon V", "SWSH7", "94", "")),
        ("1 Pidgeot ex sv3.5 17 foil", ("1", "Pidgeot ex", "sv3.5", "17", "foil")),
        ("1 Eevee SV8PT5 74 PH", ("1", "Eevee", "SV8PT5", "74", "Reverse Holofoil")),
        ("1 Porygon2 12", ("1", "Porygon2 12", "", "", "")),
        ("1 Shanks OP01-120", ("1", "Shanks", "", "OP01-120", "")),
        (
            "1 Blue-Eyes White Dragon (LOB-EN001)",
            ("1", "Blue-Eyes White Dragon", "", "LOB-EN001", ""),
        ),
        ("1 Black Lotus (LEA) 232 *Proxy*", ("1", "Black Lotus", "LEA", "232", "proxy")),
        (
            "1x Black Lotus (lea) 232 [Artifact] ^Proxy,#f47373^",
            ("1", "Black Lotus", "lea", "232", "proxy"),
        ),
        ("1 Black Lotus (LEA) 232 #proxies", ("1", "Black Lotus", "LEA", "232", "proxy")),
        ("1 Proxy Dragon (LVAL) 63", ("1", "Proxy Dragon", "LVAL", "63", "")),
        (
            "1 Erase (Not the Urza's Legacy One)",
            ("1", "Erase (Not the Urza's Legacy One)", "", "", ""),
        ),
    ],
)
def test_a_line_is_read_as_apps_write_it(line, read):
    found = read_line(line)
    assert found is not None
    assert found[:5] == read


def test_the_command_says_what_is_left_out():
    found = {
        "id": 7, "format_label": "Moxfield", "read_as": "", "state": "done", "rows": 3, "copies": 2,
        "matched": 1, "waiting": 1, "rejected_count": 0, "rejected": [], "empty": 2,
        "left_out_for": [{"reason": "a proxy", "rows": 1}],
    }  # fmt: skip
    told = told_of(
        found, {"bought": 1, "cash": "1.00", "credit": "1.20", "not_counted": 1, "without_price": 1}
    )
    assert told[2:4] == ["rows left out, a proxy: 1", "lines of no copies, passed over: 2"]


def test_a_line_that_says_no_card_waits_with_its_text():
    rows = of_list("1 Sol Ring\n--\n")
    assert rows.frame.select("row", "name", "copies", "reason", "text").rows() == [
        (1, "Sol Ring", 1, "", ""),
        (2, "", 1, "must be like “4 Name (SET) 123”", "--"),
    ]
    assert rows.rejected == [RejectedRow(2, "", "must be like “4 Name (SET) 123”")]


def test_what_cannot_be_read_waits_with_its_text_and_the_reason():
    head = b"Name,Set code,Set name,Collector number,Foil,Quantity,ManaBox ID,Condition,Language\n"
    _, rows = read(
        head
        + b"Bolt,M10,Magic 2010,146,normal,two,1,near_mint,en\n"
        + b",,Magic 2010,146,normal,1,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,shiny,1,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,chewed,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,near_mint,en,more\n"
        + b"Bolt,M10,Magic 2010,146,normal,0,1,near_mint,en\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,near_mint,Klingon\n"
        + b"Bolt,M10,Magic 2010,146,normal,1,1,near_mint,en\n"
    )
    assert [(one.line, one.column, one.reason) for one in rows.rejected] == [
        (2, "Quantity", "must be a whole number, not 'two'"),
        (3, "Name", "is empty"),
        (6, "", "this row has 10 columns; 9 expected"),
    ]
    assert rows.empty == 1
    kept = rows.frame.select("row", "finish", "condition", "language", "reason")
    assert kept.rows() == [
        (2, "Normal", "NM", "English", "Quantity: must be a whole number, not 'two'"),
        (3, "Normal", "NM", "English", "Name: is empty"),
        (4, "shiny", "NM", "English", "Foil: 'shiny' is not a known finish"),
        (5, "Normal", "chewed", "English", "Condition: 'chewed' is not a known condition"),
        (6, "Normal", "NM", "English", "this row has 10 columns; 9 expected"),
        (8, "Normal", "NM", "Klingon", "Language: 'Klingon' is not a known language"),
        (9, "Normal", "NM", "English", ""),
    ]
    assert (
        rows.frame["text"][0] == "Bolt | M10 | Magic 2010 | 146 | normal | two | 1 | near_mint | en"
    )
    assert rows.frame["text"][-1] == ""


@pytest.mark.parametrize(
    ("column", "word", "out"),
    [("Proxy", "True", True), ("Proxy", "", False), ("Playtest Card", "TRUE", True),
     ("Proxy", "False", False), ("Proxy", "no", False), ("Proxy", "1", True)],
)  # fmt: skip
def test_a_proxy_is_left_out_with_its_reason(column, word, out):
    head = f"Count,Tradelist Count,Name,Edition,Foil,Collector Number,{column}"
    _, rows = read(f"{head}\n1,1,Bolt,M11,,149,{word}\n".encode())
    [row] = rows.frame.select("left_out", "reason").rows()
    assert row == (out, "a proxy" if out else "")


@pytest.mark.parametrize(
    ("changed", "out"),
    [
        ({"Condition": "Proxy"}, True), ({"Condition": "Near Mint (proxy)"}, True),
        ({"Foil": "Proxy"}, True), ({"Foil": "Proxy Foil"}, True), ({"Foil": "foil"}, False),
        ({"Name": "Bolt (Proxy)"}, True), ({"Name": "Bolt [Proxied]"}, True),
        ({"Name": "Bolt - Proxy"}, True), ({"Name": "Proxy Dragon"}, False),
    ],
)  # fmt: skip
def test_a_proxy_is_left_out_whichever_column_says_so(changed, out):
    cells = {"Count": "1", "Tradelist Count": "1", "Name": "Bolt", "Edition": "M11", "Foil": "",
             "Collector Number": "149", "Condition": "Near Mint"} | changed  # fmt: skip
    _, rows = read(f"{','.join(cells)}\n{','.join(cells.values())}\n".encode())
    [row] = rows.frame.select("left_out", "reason", "condition").rows()
    assert row == (out, "a proxy" if out else "", "NM")


def test_a_proxy_in_a_list_is_left_out():
    frame = of_list("1 Black Lotus (proxy)\n1 Black Lotus (LEA) 232 *proxy*\n1 Black Lotus\n").frame
    assert frame["left_out"].to_list() == [True, True, False]


URZA = "Name,Count,Foil count,Special foil count,Number,Set,Condition,Languages"


@pytest.mark.parametrize(
    ("cells", "read_as"),
    [
        ('2,0,0,1,S,"1xGood,1xPlayed",', [(1, "Normal", "MP", "English"), (1, "Normal", "HP", "English")]),
        ('0,3,0,1,S,"2xNear Mint, 1xPoor",', [(2, "Foil", "NM", "English"), (1, "Foil", "DMG", "English")]),
        ('2,0,0,1,S,2xGood,"1xEnglish,1xGerman"',
         [(1, "Normal", "MP", "English"), (1, "Normal", "MP", "German")]),
        ("2,0,0,1,S,2xGood,2xGerman", [(2, "Normal", "MP", "German")]),
    ],
)  # fmt: skip
def test_a_cell_with_the_conditions_of_several_copies_is_several_rows(cells, read_as):
    _, rows = read(f"{URZA}\nBolt,{cells}\nDuress,1,0,0,2,S,,\n".encode())
    said = rows.frame.select("copies", "finish", "condition", "language").rows()
    assert said == [*read_as, (1, "Normal", "NM", "English")]
    assert rows.frame["row"].to_list()[0] == 2
    assert rows.frame["row"].n_unique() == len(said)
    assert rows.frame["line"].to_list() == [2] * len(read_as) + [3]


@pytest.mark.parametrize(
    "cells",
    [
        # Whose conditions they are cannot be told.
        '1,1,0,1,S,"1xGood,1xPlayed",',
        '3,0,0,1,S,"1xGood,1xPlayed",',
        '2,0,0,1,S,"1xGood,1xPlayed","1xEnglish,1xGerman"',
    ],
)
def test_conditions_that_fit_no_copies_wait(cells):
    _, rows = read(f"{URZA}\nBolt,{cells}\n".encode())
    assert all("is not a known" in reason for reason in rows.frame["reason"])


def test_a_graded_card_is_left_out_with_its_reason():
    text, _ = SAMPLES["collectr"]
    _, rows = read(text.replace("Ungraded,Near Mint", "PSA 10,Near Mint").encode())
    assert rows.frame.select("left_out", "reason").rows() == [
        (False, ""), (True, "a graded card; buy rules don't price those"),
    ]  # fmt: skip


def test_the_second_card_of_a_line_has_a_number_behind_the_last_line():
    head = "Reg Qty,Foil Qty,Name,Set,Acquired,Language\n"
    _, rows = read(f"{head}1,0,A,S,1,EN\n2,3,B,S,1,EN\n0,0,C,S,1,EN\n0,1,D,S,1,EN\n".encode())
    said = rows.frame.select("row", "line", "name", "copies", "finish").rows()
    assert said == [
        (2, 2, "A", 1, "Normal"), (3, 3, "B", 2, "Normal"), (7, 3, "B", 3, "Foil"),
        (5, 5, "D", 1, "Foil"),
    ]  # fmt: skip
    assert rows.empty == 1


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


@pytest.mark.parametrize(
    ("editions", "field"),
    [
        (["M11", "GK2_AZORIU", "2XM"], "set_code"), (["m11", "ltr"], "set_code"),
        (["Magic 2011", "M11"], "set_name"), (["Alpha", "Legends"], "set_name"),
        (["", ""], "set_name"),
    ],
)  # fmt: skip
def test_an_edition_that_looks_like_a_code_is_proposed_as_the_code(editions, field):
    header = [
        "Count",
        "Name",
        "Edition",
        "Collector Number",
        "Foil",
        "Condition",
        "Language",
        "Purchase Price",
    ]
    samples = [
        ["1", "Bolt", edition, "149", "", "Near Mint", "English", ""] for edition in editions
    ]
    assert recognize(header) is None
    assert propose(header, samples)[field] == 2


def test_the_docs_have_the_table_of_the_declarations():
    docs = (Path(__file__).parents[2] / "docs" / "buying.md").read_text()
    assert docs_table() in docs, f"docs/buying.md needs this table:\n{docs_table()}"


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
