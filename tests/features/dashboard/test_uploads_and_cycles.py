"""The pages of uploads and cycles, and the routes that they show: what became of a file, and its
rejected rows mended and sent again.
"""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import re

from browsers import joined, signed_in
from builders import a_csv, a_png, a_row, log, read_csv

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


def as_csv(rows: list[dict[str, str]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


async def a_shop_with_rejected_rows(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(
            a_row(1),
            a_row(2, quantity="many", name=HOSTILE),
            a_row(3, quantity=-1),
            a_row(4, name='of two\nlines, "quoted"', quantity="some"),
            a_row(5),
        )
    )
    assert report["rejected_count"] == 3
    return seller, report["id"]


async def test_rejected_rows_are_mended_and_sent_again_with_the_whole_file(a_seller):
    seller, id = await a_shop_with_rejected_rows(a_seller)
    browser = await signed_in(seller)
    page = await browser.get(f"/sync/uploads/{id}")
    assert page.status_code == 200
    told = " ".join(re.sub(r"<[^>]*>", " ", page.text).split())
    parts = "Rows read 5 − less Duplicates 0 − less Rejected 3 = leaves Imported 2"
    assert parts in told
    assert "2 cards added" in told
    file = await browser.get(f"/sync/uploads/{id}/rejected.csv")
    assert file.content == (await seller.get(f"/api/v1/uploads/{id}/rejected.csv")).content
    rows = read_csv(file.content)
    assert [row["TCGplayer Id"] for row in rows] == ["2", "3", "4"]
    assert all(row["Reason"] for row in rows)
    rows[0]["Total Quantity"] = "7"
    rows[2]["Total Quantity"] = "8"
    path, form = f"/sync/uploads/{id}/mend", {"csrf_token": browser.session["csrf_token"]}
    files = {"file": ("mended.csv", as_csv([rows[0], rows[2]]), "text/csv")}
    sent = await browser.http.post(path, data=form, files=files)
    assert sent.status_code == 303, sent.text
    new = int(sent.headers["location"].split("/")[3].split("?")[0])
    await seller.service.run_jobs()
    report = await seller.report(new)
    assert (report["state"], report["rejected_count"]) == ("done", 1)
    known = {card["marketplace_id"]: card for card in await seller.cards()}
    assert set(known) >= {1, 2, 4, 5}
    assert (known[2]["quantity"], known[4]["quantity"]) == (7, 8)
    feed = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert "upload.mended" in {entry["action"] for entry in feed}
    late = await browser.http.post(path, data=form, files=files)
    assert late.status_code == 409
    assert "is newer than upload" in late.text


async def switched(seller, **lines: bool):
    owner = await signed_in(seller)
    body = {"product_lines": [{"name": name, "enabled": on} for name, on in lines.items()]}
    assert (await owner.send("PATCH", "/api/account", json=body)).status_code == 200


async def test_the_download_has_every_rejected_row_though_the_report_lists_a_thousand(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    await switched(seller, pokemon=False)
    good = [a_row(number) for number in range(1, 4)]
    bad = [
        a_row(number, quantity="many") if number % 2 else a_row(number, line="Pokemon")
        for number in range(10, 1_510)
    ]
    rubbish = b"no row at all\n" * 100
    data = a_csv(*good, *bad) + rubbish
    report = await seller.import_csv(data)
    assert (report["rejected_count"], len(report["rejected"])) == (1_600, 1_000)
    # The lines by which the file was read count, not those that the account has by now.
    await switched(seller, pokemon=True)
    path = f"/api/v1/uploads/{report['id']}"
    rows = read_csv((await seller.get(f"{path}/rejected.csv")).content)
    assert [row["TCGplayer Id"] for row in rows[:1_500]] == [str(n) for n in range(10, 1_510)]
    assert [int(row["Line"]) for row in rows] == list(range(5, 1_605))
    assert [row["Reason"] for row in rows[:1_000]] == [one["message"] for one in report["rejected"]]
    assert all("column" in row["Reason"] for row in rows[1_500:]), rows[1_500]
    last = rows[1_499] | {"Total Quantity": "9", "Product Line": "Magic"}
    sent = await seller.post(f"{path}/mend", content=as_csv([last]))
    assert sent.status_code == 202, sent.text
    await seller.service.run_jobs()
    again = await seller.report(sent.json()["upload_id"])
    assert again["rejected_count"] < report["rejected_count"]
    assert 1_509 in {card["marketplace_id"] for card in await seller.cards()}


async def test_a_file_that_is_no_mended_one_is_refused_with_its_reason(a_seller):
    seller, id = await a_shop_with_rejected_rows(a_seller)
    rows = read_csv((await seller.get(f"/api/v1/uploads/{id}/rejected.csv")).content)
    path = f"/api/v1/uploads/{id}/mend"
    bare = [{name: cell for name, cell in row.items() if name != "Line"} for row in rows]
    for body in (as_csv(bare), as_csv([rows[0] | {"Line": "2"}]), b"", as_csv(rows)[:400]):
        answer = await seller.post(path, content=body, headers={"Content-Type": "text/csv"})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_csv"), body
    absent = await seller.post("/api/v1/uploads/999999/mend", content=as_csv(rows))
    assert absent.status_code == 404


async def test_two_mendings_at_once_lose_no_card(a_seller):
    seller, id = await a_shop_with_rejected_rows(a_seller)
    rows = read_csv((await seller.get(f"/api/v1/uploads/{id}/rejected.csv")).content)
    rows[0]["Total Quantity"] = "7"
    path, body = f"/api/v1/uploads/{id}/mend", as_csv(rows[:1])
    answers = await asyncio.gather(*(seller.post(path, content=body) for _ in range(2)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    await seller.service.run_jobs()
    assert {card["marketplace_id"] for card in await seller.cards()} >= {1, 2, 5}


async def test_the_pages_show_what_the_reads_answer(a_seller):
    seller, id = await a_shop_with_rejected_rows(a_seller)
    await log(seller, "failed", {"fetch_orders": "failed"}, sync_cycle_id="c-1", duration_ms=5000)
    shot = {
        "screenshot": base64.b64encode(a_png()).decode(),
        "sync_cycle_id": "c-1",
        "step_name": HOSTILE,
    }
    assert (await seller.post("/api/v1/sync/debug", json=shot)).status_code == 201
    browser = await signed_in(seller)
    listed = (await seller.get("/api/v1/uploads")).json()
    assert (
        f'href="/sync/uploads/{listed["uploads"][0]["id"]}"'
        in (await browser.get("/sync/uploads")).text
    )
    cycles = (await seller.get("/api/v1/sync/cycles")).json()
    [cycle] = cycles["cycles"]
    assert f'href="/sync/cycles/{cycle["id"]}"' in (await browser.get("/sync/cycles")).text
    one = (await seller.get(f"/api/v1/sync/cycles/{cycle['id']}")).json()
    assert one == cycle
    assert "trigger_source" not in one
    page = await browser.get(f"/sync/cycles/{cycle['id']}")
    assert page.status_code == 200
    assert "Fetch orders" in page.text
    assert f"Sync {cycle['id']}" in page.text
    assert "5 seconds" in page.text
    assert "<b onclick" not in page.text
    picture = f"/api/v1/sync/screenshots/{cycle['screenshots'][0]['id']}"
    assert picture in page.text
    got = await browser.get(picture)
    assert (got.content, got.headers["content-type"]) == (a_png(), "image/png")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]
    assert (await browser.get("/sync/cycles/999999")).status_code == 404
    staff = await joined(seller, f"bea-{seller.email}")
    for path in ("/sync/cycles", "/sync/uploads", f"/sync/uploads/{id}", picture):
        assert (await staff.get(path)).status_code == 403
    assert 'href="/sync/uploads"' not in (await staff.get("/sync")).text


async def test_an_upload_in_review_is_settled_and_forms_need_their_token(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    id = (await seller.import_csv(a_csv(a_row(1, quantity=3))))["id"]
    browser = await signed_in(seller)
    assert "needs your review" in (await browser.get(f"/sync/uploads/{id}")).text
    path = f"/sync/uploads/{id}"
    assert (await browser.http.post(f"{path}/review", data={"csrf_token": "x"})).status_code == 403
    files = {"file": ("mended.csv", b"x", "text/csv")}
    refused = await browser.http.post(f"{path}/mend", data={"csrf_token": "x"}, files=files)
    assert refused.status_code == 403
    assert (await browser.form(f"{path}/review", decision="maybe")).status_code == 422
    assert (await browser.form(f"{path}/review", decision="confirmed")).status_code == 303
    await seller.service.run_jobs()
    assert (await seller.report(id))["state"] == "done"


async def test_a_cycle_tells_what_became_of_its_prices(a_seller):
    seller = await a_seller()
    await log(seller, "success", {"fetch_orders": "success"}, sync_cycle_id="c-2")
    told = {"sync_cycle_id": "c-2", "imported_at": "2026-01-01T00:00:00Z", "row_count": 7}
    failed = {"step": "import", "error": {"code": "refused", "message": HOSTILE}}
    assert (await seller.post("/api/v1/repricing_events", json=told)).status_code == 201
    path = "/api/v1/repricing_events/failure"
    assert (await seller.post(path, json=told | failed)).status_code == 201
    browser = await signed_in(seller)
    [cycle] = (await seller.get("/api/v1/sync/cycles")).json()["cycles"]
    assert len(cycle["price_events"]) == 2
    page = await browser.get(f"/sync/cycles/{cycle['id']}")
    assert page.status_code == 200
    assert "&lt;b onclick" in page.text
    assert "<b onclick" not in page.text
