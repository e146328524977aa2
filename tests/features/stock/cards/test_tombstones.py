"""The cards that a file makes gone: those that are sold out, and those absent from the lines that
it covers.
"""

from decimal import Decimal

import pytest

from builders import HEADER, a_csv, a_row, a_shop, read_csv

pytestmark = pytest.mark.day

POKEMON = [a_row(n, line="Pokemon") for n in (11, 12)]
MAGIC = [a_row(n) for n in (1, 2, 3)]
CARDS = [*MAGIC, *POKEMON]
# As many as it takes for a file without them to be looked at.
MANY = [a_row(n, line="Pokemon") for n in range(11, 31)]
NAME_FIRST = ["Product Name", *(name for name in HEADER if name != "Product Name")]


async def gone(seller):
    return [card["marketplace_id"] for card in await seller.cards() if card["gone"]]


def kept(report):
    """The report's messages about cards that the file cannot speak for."""
    return [
        row["message"] for row in report["noted"] if (row["line"], row["code"]) == (1, "cards_kept")
    ]


async def confirm(seller, upload):
    assert (await seller.post(f"/api/v1/uploads/{upload}/confirm")).status_code == 200
    await seller.service.run_jobs()
    return await seller.report(upload)


async def test_rows_that_a_file_no_longer_holds_are_gone(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0], *POKEMON))
    assert (report["applied"], report["gone"]) == (3, 2)
    assert await gone(seller) == [2, 3]


async def test_a_gone_card_has_no_stock_no_target_and_no_export(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    assert len(read_csv((await seller.export()).content)) == 5
    await seller.import_csv(a_csv(MAGIC[0], *POKEMON))
    card = (await seller.cards())[1]
    assert (card["quantity"], card["target_price"]) == (0, None)
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == [
        "1",
        "11",
        "12",
    ]


@pytest.mark.night
async def test_lines_that_do_not_occur_in_the_file_stay_as_they_are(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0]))
    assert report["gone"] == 2
    assert await gone(seller) == [2, 3]


async def test_of_a_file_that_names_its_line_only_that_line_loses_rows(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0], POKEMON[0]), **{"X-Product-Line": "pokemon"})
    assert (report["applied"], report["gone"]) == (2, 1)
    assert await gone(seller) == [12]


@pytest.mark.night
async def test_a_file_that_names_a_line_and_holds_no_row_of_it_takes_nothing_away(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0]), **{"X-Product-Line": "pokemon"})
    assert (report["applied"], report["gone"]) == (1, 0)
    assert await gone(seller) == []


@pytest.mark.night
async def test_a_file_that_names_a_line_and_holds_no_row_of_it_is_short_and_takes_nothing_away_even_when_confirmed(
    a_seller,
):
    seller = await a_seller()
    await seller.import_csv(a_csv(*MAGIC, *MANY))
    report = await seller.import_csv(a_csv(*MAGIC), **{"X-Product-Line": "pokemon"})
    assert (report["state"], report["review"]) == ("awaiting_review", ["short_inventory:pokemon"])
    confirmed = await confirm(seller, report["id"])
    assert (confirmed["state"], confirmed["gone"], kept(confirmed)) == (
        "done",
        0,
        ["20 missing cards of pokemon stay in stock: the file has no rows for this game"],
    )
    assert await gone(seller) == []


@pytest.mark.night
async def test_an_unreadable_row_that_does_not_begin_with_its_id_keeps_every_card(a_seller):
    """Which card it names cannot be told, and that card is in the file."""
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(
        a_csv(MAGIC[0], header=NAME_FIRST) + b'"Card 2","2","Magic"\r\n'
    )
    assert (report["applied"], report["rejected_count"], report["gone"]) == (1, 1, 0)
    assert kept(report) == [
        "2 missing cards of magic stay in stock: unreadable rows (1) may belong to them"
    ]
    assert await gone(seller) == []


@pytest.mark.night
async def test_a_short_file_is_short_whatever_its_unreadable_rows_may_name(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*MANY))
    report = await seller.import_csv(
        a_csv(*MANY[:5], header=NAME_FIRST) + b'"Card 2","2","Pokemon"\r\n'
    )
    assert (report["state"], report["review"]) == ("awaiting_review", ["short_inventory:pokemon"])
    confirmed = await confirm(seller, report["id"])
    assert (confirmed["state"], confirmed["gone"], len(kept(confirmed))) == ("done", 0, 1)
    assert await gone(seller) == []


def a_line(id):
    return a_csv(a_row(id)).splitlines(keepends=True)[1]


UNTOLD = {
    "no number": a_line("3x"),
    "blank": a_line(""),
    "zero": a_line("0"),
    "a broken cell": b'"3"x,"Magic"\r\n',
    "zero in a broken row": b"0,Magic\r\n",
    "no cell": b"that is all\r\n",
    "others behind a lone CR": b"4" + a_line("4").strip()[3:] + b"\r" + a_line("3"),
    "others behind a lost line end": a_line("4").strip() + a_line("3"),
    "a line too long to look at": b"4," + b"x" * 70_000 + b"\r\n",
}


@pytest.mark.first(1)
@pytest.mark.parametrize("untold", UNTOLD.values(), ids=UNTOLD)
async def test_a_row_whose_id_cannot_be_read_keeps_every_card(a_seller, untold):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0], MAGIC[1]) + untold)
    assert (report["applied"], report["rejected_count"], report["gone"], len(kept(report))) == (
        2,
        1,
        0,
        1,
    )
    assert await gone(seller) == []


BLANK = {
    "nothing": b"\r\n",
    "blanks": b"  \r\n",
    "cells": b"," * (len(HEADER) - 1) + b"\r\n",
    "some cells": b'"",""\r\n',
}


@pytest.mark.night
@pytest.mark.parametrize("blank", BLANK.values(), ids=BLANK)
async def test_a_row_of_nothing_keeps_no_card(a_seller, blank):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0], MAGIC[1]) + blank)
    assert (report["gone"], report["noted_count"]) == (1, 0)
    assert await gone(seller) == [3]


@pytest.mark.night
async def test_an_unreadable_row_that_begins_with_its_id_keeps_that_card_alone(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    report = await seller.import_csv(a_csv(MAGIC[0]) + b'"2","Magic"\r\n')
    assert (report["gone"], report["noted_count"]) == (1, 0)
    assert await gone(seller) == [3]


@pytest.mark.night
async def test_the_key_form_names_the_line_as_the_header_does(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    await seller.import_key(
        await seller.put_object(a_csv(MAGIC[0], POKEMON[0])), product_line="pokemon"
    )
    assert await gone(seller) == [12]


@pytest.mark.night
async def test_the_named_line_serves_rows_whose_cell_is_blank(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    rows = [a_row(1, line=""), a_row(2, line="Magic"), a_row(3, line="  ")]
    await seller.import_csv(a_csv(*rows), **{"X-Product-Line": "pokemon"})
    assert [card["product_line"] for card in await seller.cards()] == [
        "pokemon",
        "magic",
        "pokemon",
    ]


async def test_without_a_named_line_blank_cells_mean_the_accounts_first(a_seller):
    seller = await a_seller(lines=["pokemon", "magic"])
    await seller.import_csv(a_csv(a_row(1, line="")))
    assert [card["product_line"] for card in await seller.cards()] == ["pokemon"]


@pytest.mark.first(1)
@pytest.mark.parametrize("quantity", ["0", ""])
async def test_a_row_that_is_sold_out_is_gone(a_seller, quantity):
    seller = await a_shop(a_seller, *CARDS)
    await seller.import_csv(a_csv(a_row(1, quantity=quantity), *MAGIC[1:]))
    assert await gone(seller) == [1]
    assert "1" not in [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)]


async def test_a_card_first_seen_sold_out_is_kept_and_not_priced(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1, quantity=0)))
    assert (report["applied"], report["blocked"]) == (1, {"out_of_stock": 1})
    assert [(card["gone"], card["target_price"]) for card in await seller.cards()] == [(True, None)]


@pytest.mark.first(1)
@pytest.mark.parametrize("away", ["absent", "sold out"])
async def test_a_card_comes_back_under_its_inventory_id(a_seller, away):
    seller = await a_shop(a_seller, *CARDS)
    before = {card["marketplace_id"]: card["id"] for card in await seller.cards()}
    others = MAGIC[1:]
    await seller.import_csv(
        a_csv(*others) if away == "absent" else a_csv(a_row(1, quantity=0), *others)
    )
    assert await gone(seller) == [1]
    report = await seller.import_csv(a_csv(a_row(1, quantity=2, market="3.00"), *others))
    assert (report["state"], report["gone"]) == ("done", 0)
    card = (await seller.cards())[0]
    assert (card["id"], card["gone"], card["quantity"]) == (before[1], False, 2)
    assert card["target_price"] == Decimal("2.9700")


@pytest.mark.night
async def test_a_card_that_stays_away_is_not_gone_again(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    file = a_csv(*MAGIC[1:])
    assert (await seller.import_csv(file))["gone"] == 1
    before = await seller.cards()
    assert (await seller.import_csv(file))["gone"] == 0
    assert await seller.cards() == before


async def test_another_sellers_cards_of_the_same_ids_stay(a_seller):
    seller, other = await a_shop(a_seller, *CARDS), await a_shop(a_seller, *CARDS)
    before = await other.cards()
    await seller.import_csv(a_csv(MAGIC[0]))
    assert await gone(seller) == [2, 3]
    assert await other.cards() == before


async def test_a_file_that_cannot_be_read_makes_nothing_gone(a_seller):
    seller = await a_shop(a_seller, *CARDS)
    before = await seller.cards()
    report = await seller.import_key(await seller.put_object(b"\x1f\x8bbroken"))
    assert report["state"] == "failed"
    assert await seller.cards() == before
