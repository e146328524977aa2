"""The main job over HTTP: an inventory CSV goes in, correct price changes come out."""

from builders import a_csv, a_row, read_csv


async def test_an_upload_is_matched_priced_and_exported(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, market="1.20", price="1.00"), a_row(2, market="1.00", price="1.00"))
    )
    assert (report["state"], report["rows"], report["applied"], report["changed"]) == ("done", 2, 2, 1)
    export = await seller.export()
    assert export.status_code == 200
    rows = read_csv(export.content)
    # Competitive: market - 1 %, never lower than the current price.
    assert [(row["TCGplayer Id"], row["TCG Marketplace Price"], row["Add to Quantity"]) for row in rows] == [
        ("1", "1.1900", "0")
    ]
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
    broken = a_csv(a_row(1), a_row(2, quantity="two"), a_row(4, name=""), a_row(5)) + b'"3","Magic","short"\r\n'
    report = await seller.import_csv(broken)
    assert (report["rejected_count"], report["gone"]) == (3, 0)
    assert [card["gone"] for card in await seller.cards()] == [False] * 5
