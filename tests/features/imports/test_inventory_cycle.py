"""The main job over HTTP: an inventory CSV is uploaded, and the price file has the correct
changes.
"""

import pytest

from builders import HEADER, a_csv, a_row, read_csv


async def test_an_upload_is_matched_priced_and_exported(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, market="1.20", price="1.00"), a_row(2, market="1.00", price="1.00"))
    )
    assert (report["state"], report["rows"], report["applied"], report["changed"]) == (
        "done",
        2,
        2,
        1,
    )
    export = await seller.export()
    assert export.status_code == 200
    rows = read_csv(export.content)
    # Competitive: market - 1 %, never lower than the current price.
    assert [
        (row["TCGplayer Id"], row["TCG Marketplace Price"], row["Add to Quantity"]) for row in rows
    ] == [("1", "1.1900", "0")]
    assert "X-Price-Export-Empty-Reason" not in export.headers


async def test_the_same_file_again_changes_nothing(a_seller):
    seller = await a_seller()
    data = a_csv(*(a_row(n) for n in range(1, 131)))
    await seller.import_csv(data)
    before = await seller.cards()
    report = await seller.import_csv(data)
    assert (report["state"], report["applied"], report["gone"]) == ("done", 130, 0)
    assert await seller.cards() == before


async def test_a_row_that_is_kept_out_does_not_make_its_card_gone(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 6))))
    broken = (
        a_csv(a_row(1), a_row(2, quantity="two"), a_row(4, name=""), a_row(5))
        + b'"3","Magic","short"\r\n'
    )
    report = await seller.import_csv(broken)
    assert (report["rejected_count"], report["gone"]) == (3, 0)
    assert [card["gone"] for card in await seller.cards()] == [False] * 5


async def test_both_forms_of_the_upload_come_to_the_same(a_seller):
    raw, keyed = await a_seller(), await a_seller()
    data = a_csv(
        a_row(1, market="3.00", price="2.00"), a_row(2, market="", low="5.00", price="1.00")
    )
    first = await raw.import_csv(data)
    second = await keyed.import_key(await keyed.put_object(data))
    told = (
        "state",
        "rows",
        "applied",
        "skipped",
        "duplicates",
        "matched",
        "provisional",
        "priced",
        "changed",
        "gone",
    )
    assert {name: first[name] for name in told} == {name: second[name] for name in told}
    assert (await raw.export()).content == (await keyed.export()).content
    prices = [row["TCG Marketplace Price"] for row in read_csv((await raw.export()).content)]
    assert prices == ["2.9700", "4.9500"]


async def test_a_file_larger_than_a_slab_is_imported_whole(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(*(a_row(n, market="1.50") for n in range(1, 176))))
    assert (report["applied"], report["changed"]) == (175, 175)
    assert len(read_csv((await seller.export()).content)) == 175
    report = await seller.import_csv(a_csv(*(a_row(n, market="1.45") for n in range(1, 176))))
    assert (report["applied"], report["changed"]) == (175, 175)
    assert {row["TCG Marketplace Price"] for row in read_csv((await seller.export()).content)} == {
        "1.4400"
    }


async def test_when_the_marketplace_took_the_prices_over_there_is_nothing_left_to_push(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="1.50") for n in range(1, 4))))
    asked = {
        row["TCGplayer Id"]: row["TCG Marketplace Price"]
        for row in read_csv((await seller.export()).content)
    }
    report = await seller.import_csv(
        a_csv(*(a_row(n, market="1.50", price=asked[str(n)]) for n in range(1, 4)))
    )
    assert report["changed"] == 0
    assert (await seller.export()).headers["X-Price-Export-Empty-Reason"] == "no_updates"


async def test_a_price_never_falls_and_a_cent_is_the_least_move(a_seller):
    seller = await a_seller()
    prices = {1: "5.00", 2: "1.1900", 3: "1.1850", 4: "1.1700"}
    await seller.import_csv(
        a_csv(*(a_row(n, market="1.20", price=price) for n, price in prices.items()))
    )
    rows = read_csv((await seller.export()).content)
    assert [(row["TCGplayer Id"], row["TCG Marketplace Price"]) for row in rows] == [
        ("4", "1.1900")
    ]


@pytest.mark.parametrize(
    "dress", ["byte order mark", "line feeds", "bare cells", "different order", "other case"]
)
async def test_the_file_may_come_in_another_dress(a_seller, dress):
    rows = [a_row(1, market="1.20"), a_row(2, market="1.00")]
    plain = a_csv(*rows)
    dressed = {
        "byte order mark": b"\xef\xbb\xbf" + plain,
        "line feeds": a_csv(*rows, eol="\n"),
        "bare cells": plain.replace(b'"', b""),
        "different order": a_csv(*rows, header=HEADER[::-1]),
        "other case": plain.replace(b"TCGplayer Id", b" tcgPLAYER id ").replace(
            b"Total Quantity", b"TOTAL QUANTITY"
        ),
    }[dress]
    seller, usual = await a_seller(), await a_seller()
    report = await seller.import_csv(dressed)
    assert (report["state"], report["applied"], report["rejected_count"]) == ("done", 2, 0)
    await usual.import_csv(plain)
    assert (await seller.export()).content == (await usual.export()).content


async def test_columns_that_we_do_not_know_are_left_aside_and_unneeded_ones_may_be_missing(
    a_seller,
):
    seller = await a_seller()
    needed = [
        "TCGplayer Id",
        "Product Name",
        "Condition",
        "Total Quantity",
        "TCG Marketplace Price",
    ]
    header = ["Pending Quantity", *needed, "Language", "TCG Low w/ Shipping"]
    cells = {"Pending Quantity": "3", "Language": "English", "TCG Low w/ Shipping": "2.31"}
    report = await seller.import_csv(a_csv(a_row(1, **cells), header=header))
    assert (report["applied"], report["rejected_count"]) == (1, 0)
    card = (await seller.cards())[0]
    assert (str(card["low_with_shipping"]), card["market"], card["product_line"]) == (
        "2.3100",
        None,
        "magic",
    )


async def test_the_report_of_an_upload_has_exactly_its_fields(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1)))
    decided = {
        "id", "stream", "state", "received_at", "finished_at", "rows", "applied", "skipped",
        "duplicates", "rejected_count",
        "rejected", "error", "matched", "provisional", "ambiguous", "changed", "gone",
    }  # fmt: skip
    additive = {
        "priced", "noted", "noted_count", "blocked", "review", "catalog_loaded", "new_printing",
        "new",
    }  # fmt: skip
    assert set(report) == decided | additive
    assert (report["error"], report["rejected"]) == (None, [])
    assert report["received_at"] <= report["finished_at"]


async def test_an_upload_waits_its_turn_and_says_so(a_seller):
    seller = await a_seller()
    answer = await seller.upload(a_csv(a_row(1)))
    assert (answer.status_code, answer.json()) == (
        202,
        {"status": "accepted", "upload_id": answer.json()["upload_id"]},
    )
    waiting = await seller.report(answer.json()["upload_id"])
    assert (waiting["state"], waiting["finished_at"], waiting["rows"]) == ("queued", None, 0)
    status = (await seller.get("/api/v1/status")).json()
    assert (status["phase"], status["sync_in_progress"], status["last_sync_at"]) == (
        "queued",
        True,
        None,
    )
    await seller.service.run_jobs()
    status = (await seller.get("/api/v1/status")).json()
    assert (status["phase"], status["sync_in_progress"]) == ("push_queued", False)
    assert status["last_sync_at"] is not None
