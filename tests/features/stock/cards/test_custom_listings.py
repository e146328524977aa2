"""Custom listings: negative ids of ours, the marketplace's id in the export."""

from builders import a_csv, a_row, read_csv

PHOTO = "https://example.invalid/photo/1.jpg"


def a_custom(id, title, **cells):
    return a_row(id, name=f"Card {id}: {title}", title=title, photo=PHOTO, **cells)


async def test_a_custom_listing_keeps_its_number_and_exports_the_marketplaces_id(a_seller):
    seller = await a_seller()
    rows = (a_custom(5, "signed"), a_custom(6, "altered"), a_row(7))
    for _ in range(2):
        await seller.import_csv(a_csv(*rows))
        assert [card["marketplace_id"] for card in await seller.cards()] == [-2, -1, 7]
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == [
        "5",
        "6",
        "7",
    ]


async def test_an_id_that_listings_share_is_told_and_never_exported_twice(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_custom(5, "signed"), a_custom(5, "altered"), a_row(5), a_row(6))
    )
    assert report["applied"] == 4
    assert {(note["line"], note["code"]) for note in report["noted"]} == {
        (2, "shared_id"),
        (3, "shared_id"),
    }
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == ["6"]


async def test_a_rejected_row_of_a_custom_listing_does_not_make_it_gone(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_custom(5, "signed"), a_row(7)))
    report = await seller.import_csv(a_csv(a_custom(5, "signed", quantity="two"), a_row(7)))
    assert (report["rejected_count"], report["gone"]) == (1, 0)
    assert not any(card["gone"] for card in await seller.cards())


async def test_odd_cells_are_texts_like_others(a_seller):
    seller = await a_seller()
    name = '\\N, "quoted"\nover two lines'
    report = await seller.import_csv(a_csv(a_row(1, name=name, set="\\N", condition="Pristine")))
    assert (report["applied"], [note["code"] for note in report["noted"]]) == (
        1,
        ["unreadable_condition"],
    )
    row = read_csv((await seller.export()).content)[0]
    assert (row["Product Name"], row["Set Name"], row["Condition"]) == (name, "\\N", "Pristine")


async def test_a_price_that_the_seller_changes_below_the_same_target_is_a_change(a_seller, service):
    seller = await a_seller()
    for price in ("1.19", "0.50"):
        await seller.import_csv(a_csv(a_row(1, price=price, market="1.20")))
    found = await service.sql(
        seller.id, "SELECT old_price::text, new_price::text FROM price_change"
    )
    assert found == [{"old_price": "0.5000", "new_price": "1.1900"}]
