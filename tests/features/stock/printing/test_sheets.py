"""Label sheets over HTTP: all of them, and the places of labels from a begun sheet's label on."""

from browsers import joined


async def test_the_sheets_are_told_in_millimetres(a_seller):
    seller = await a_seller()
    sheets = (await seller.get("/api/print/sheets")).json()["sheets"]
    [avery] = [sheet for sheet in sheets if sheet["key"] == "avery-l7160"]
    assert (avery["page_width"], avery["page_height"]) == ("210", "297")
    assert (avery["label_width"], avery["label_height"], avery["labels"]) == ("63.5", "38.1", 21)
    assert {sheet["kind"] for sheet in sheets} == {"sheet", "roll"}


async def test_labels_begin_at_the_asked_label_and_go_on_on_the_next_page(a_seller):
    seller = await a_seller()
    staff = await joined(seller, "printing@example.invalid")
    answer = await staff.get("/api/print/sheets/avery-5160?count=3&start=29")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["pages"] == 2
    assert [(place["page"], place["column"], place["row"]) for place in told["positions"]] == [
        (1, 2, 10),
        (1, 3, 10),
        (2, 1, 1),
    ]
    assert (told["positions"][2]["left"], told["positions"][2]["top"]) == ("4.7625", "12.7")


async def test_what_no_sheet_has_is_refused(a_seller):
    seller = await a_seller()
    unknown = await seller.get("/api/print/sheets/none")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    behind = await seller.get("/api/print/sheets/avery-5160?count=1&start=31")
    assert (behind.status_code, behind.json()["code"]) == (422, "invalid_payload")
    assert "labels 1 to 30" in behind.json()["error"]
