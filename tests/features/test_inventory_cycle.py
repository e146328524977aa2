"""The main job over HTTP: an inventory CSV goes in, correct price changes come out."""

from builders import a_csv, a_row, read_csv


async def test_an_upload_is_matched_priced_and_exported(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1, market="1.20", price="1.00"), a_row(2, market="1.00", price="1.00")))
    assert (report["state"], report["rows"], report["applied"], report["changed"]) == ("done", 2, 2, 1)
    export = await seller.export()
    assert export.status_code == 200
    rows = read_csv(export.content)
    # Competitive: market - 1 %, never lower than the current price.
    assert [(row["TCGplayer Id"], row["TCG Marketplace Price"], row["Add to Quantity"]) for row in rows] == [("1", "1.1900", "0")]
    assert "X-Price-Export-Empty-Reason" not in export.headers


async def test_the_same_file_again_changes_nothing(a_seller):
    seller = await a_seller()
    data = a_csv(*(a_row(n) for n in range(1, 131)))
    await seller.import_csv(data)
    before = await seller.cards()
    report = await seller.import_csv(data)
    assert (report["state"], report["applied"], report["gone"]) == ("done", 130, 0)
    assert await seller.cards() == before
