"""Uploads by a presigned URL: ask for one, PUT the CSV there, name its key."""

import asyncio
import gzip
import re
import uuid
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock

ONE_CARD = a_csv(a_row(1))


def code(answer) -> tuple[int, str]:
    assert set(answer.json()) == {"error", "code"}
    return answer.status_code, answer.json()["code"]


@pytest.mark.day
@pytest.mark.parametrize("data", [ONE_CARD, gzip.compress(ONE_CARD)], ids=["plain", "gzip"])
async def test_a_file_that_was_put_is_imported_by_its_key(a_seller, data):
    seller = await a_seller()
    report = await seller.import_key(await seller.put_object(data))
    assert (report["stream"], report["state"], report["rows"], report["applied"]) == (
        "inventory",
        "done",
        1,
        1,
    )


async def test_an_upload_request_gives_a_url_a_key_and_when_it_expires(a_seller):
    seller = await a_seller()
    before = clock.now()
    slot = await seller.reserve()
    assert set(slot) == {"upload_url", "key", "expires_at"}
    assert re.fullmatch(
        rf"syncs/u{seller.id}/[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}\.csv", slot["key"]
    )
    assert slot["expires_at"].endswith("Z")
    left = datetime.fromisoformat(slot["expires_at"]) - before
    assert timedelta(seconds=598) < left <= timedelta(seconds=601)
    assert urlsplit(slot["upload_url"]).path == f"/objects/{slot['key']}"
    assert (await seller.reserve())["key"] != slot["key"]


async def test_an_upload_request_needs_no_body(a_seller):
    seller = await a_seller()
    answer = await seller.post("/api/v1/sync/upload-request")
    assert (answer.status_code, set(answer.json())) == (200, {"upload_url", "key", "expires_at"})


async def test_an_upload_request_may_name_a_line_of_the_account(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    assert (await seller.reserve(product_line="pokemon"))["key"]


@pytest.mark.parametrize("line", ["lorcana", "Pokemon", "chess", ""])
async def test_an_upload_request_for_another_line_is_invalid_product_line(a_seller, line):
    seller = await a_seller(lines=["magic", "pokemon"])
    answer = await seller.post("/api/v1/sync/upload-request", json={"product_line": line})
    assert code(answer) == (422, "invalid_product_line")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, "bad_request")),
        (b"[]", (422, "invalid_payload")),
        (b'{"product_line": 5}', (422, "invalid_payload")),
    ],
)
async def test_an_upload_request_with_a_broken_body_is_refused(a_seller, body, expected):
    seller = await a_seller()
    headers = {"Content-Type": "application/json"}
    assert (
        code(await seller.post("/api/v1/sync/upload-request", content=body, headers=headers))
        == expected
    )


async def test_a_put_answers_200_with_nothing(a_seller):
    seller = await a_seller()
    answer = await seller.put((await seller.reserve())["upload_url"], ONE_CARD)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_url_takes_one_upload(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    assert (await seller.put(slot["upload_url"], ONE_CARD)).status_code == 200
    assert code(await seller.put(slot["upload_url"], a_csv(a_row(1), a_row(2)))) == (
        409,
        "already_used",
    )
    assert (await seller.import_key(slot["key"]))["rows"] == 1


async def test_of_concurrent_puts_one_wins(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    answers = await asyncio.gather(
        *(seller.put(slot["upload_url"], a_csv(a_row(n))) for n in range(1, 7))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    winner = 1 + [answer.status_code for answer in answers].index(200)
    await seller.import_key(slot["key"])
    assert [card["marketplace_id"] for card in await seller.cards()] == [winner]


async def test_a_url_is_good_for_almost_ten_minutes(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    clock.shift(timedelta(seconds=590))
    assert (await seller.put(slot["upload_url"], ONE_CARD)).status_code == 200


async def test_a_url_expires_after_ten_minutes(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    clock.shift(timedelta(seconds=601))
    assert code(await seller.put(slot["upload_url"], ONE_CARD)) == (403, "url_expired")


@pytest.mark.night
async def test_an_object_can_be_named_after_its_url_expired(a_seller):
    seller = await a_seller()
    key = await seller.put_object(ONE_CARD)
    clock.shift(timedelta(seconds=700))
    assert (await seller.import_key(key))["state"] == "done"


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url[:-1] + ("0" if url[-1] != "0" else "1"),
        lambda url: url.split("?")[0],
        lambda url: re.sub(
            r"expires=\d+", lambda found: f"expires={int(found[0][8:]) + 3600}", url
        ),
        lambda url: re.sub(r"expires=\d+", "expires=tomorrow", url),
        lambda url: re.sub(r"expires=\d+", "expires=9999999999999999999", url),
        lambda url: re.sub(r"[0-9a-f-]{36}\.csv", f"{uuid.uuid4()}.csv", url),
        lambda url: re.sub(r"signature=\w+", "signature=%C3%A4", url),
    ],
    ids=[
        "signature",
        "no-signature",
        "later",
        "no-number",
        "huge-number",
        "other-key",
        "not-ascii",
    ],
)
async def test_a_changed_url_is_invalid_signature(a_seller, change):
    seller = await a_seller()
    url = (await seller.reserve())["upload_url"]
    assert code(await seller.put(change(url), ONE_CARD)) == (403, "invalid_signature")
    assert (await seller.put(url, ONE_CARD)).status_code == 200


@pytest.mark.parametrize(
    ("begins", "limit"),
    [(b"\x1f\x8b", 20_000_000), (b"TC", 50_000_000)],
    ids=["compressed", "plain"],
)
async def test_a_put_over_the_limit_is_payload_too_large_and_does_not_use_the_url_up(
    a_seller, begins, limit
):
    seller = await a_seller()
    url = (await seller.reserve())["upload_url"]

    async def body(size: int):
        # The first two bytes come alone: what a body is must not depend on how it is cut.
        yield begins[:1]
        yield begins[1:]
        for at in range(2, size, 1 << 20):
            yield bytes(min(1 << 20, size - at))

    assert code(await seller.put(url, body(limit + 1))) == (413, "payload_too_large")
    assert (await seller.put(url, body(limit))).status_code == 200


async def test_the_same_key_again_is_the_same_upload_whatever_the_cycle(a_seller):
    seller = await a_seller()
    key = await seller.put_object(ONE_CARD)
    first = await seller.send_key(key, sync_cycle_id="monday")
    again = await seller.send_key(key, sync_cycle_id="tuesday")
    await seller.service.run_jobs()
    later = await seller.send_key(key)
    assert {answer.status_code for answer in (first, again, later)} == {202}
    assert first.json() == again.json() == later.json()
    assert set(first.json()) == {"status", "upload_id"}
    assert first.json()["status"] == "accepted"
    runs = await seller.service.sql(
        seller.id, "SELECT upload_id FROM price_run WHERE seller_id = :id", id=seller.id
    )
    assert [run["upload_id"] for run in runs] == [first.json()["upload_id"]]


async def test_concurrent_posts_of_one_key_make_one_upload(a_seller):
    seller = await a_seller()
    key = await seller.put_object(ONE_CARD)
    answers = await asyncio.gather(*(seller.send_key(key) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {202}
    ids = {answer.json()["upload_id"] for answer in answers}
    stored = await seller.service.sql(
        seller.id, "SELECT id FROM upload WHERE seller_id = :id", id=seller.id
    )
    assert ids == {row["id"] for row in stored}
    assert len(ids) == 1
    await seller.service.run_jobs()
    assert (await seller.report(ids.pop()))["state"] == "done"
    assert (await seller.get("/api/v1/status")).json()["phase"] == "push_queued"


async def test_a_key_that_names_nothing_of_the_caller_is_invalid_in_the_same_words(a_seller):
    seller, other = await a_seller(), await a_seller()
    theirs = await other.put_object(ONE_CARD)
    unused = (await seller.reserve())["key"]
    keys = [
        None, 5, ["syncs"], "", "syncs", theirs, unused,
        theirs.replace(f"u{other.id}", f"u{seller.id}"),
        f"syncs/u{seller.id}/{str(uuid.uuid4()).upper()}.csv",
        f"syncs/u{seller.id}/{uuid.uuid4()}.csv\n",
        f"syncs/u{seller.id}/../u{other.id}/{theirs.rsplit('/')[-1]}",
        f"syncs/u0{seller.id}/{unused.rsplit('/')[-1]}",
        f"accepted/u{seller.id}/{uuid.uuid4()}.csv",
    ]  # fmt: skip
    answers = [await seller.send_key(key) for key in keys]
    answers.append(await seller.post("/api/v1/sync", json={"product_line": "magic"}))
    assert {code(answer) for answer in answers} == {(422, "invalid_object_key")}
    assert len({answer.json()["error"] for answer in answers}) == 1
    assert (
        await seller.service.sql(
            seller.id, "SELECT id FROM upload WHERE seller_id = :id", id=seller.id
        )
        == []
    )
    assert (await other.import_key(theirs))["state"] == "done"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, "bad_request")),
        (b"", (400, "bad_request")),
        (b"[]", (422, "invalid_payload")),
        (b'"key"', (422, "invalid_payload")),
        (b'{"key": "syncs", "product_line": 5}', (422, "invalid_payload")),
    ],
)
async def test_a_key_form_of_the_wrong_shape_is_refused(a_seller, body, expected):
    seller = await a_seller()
    headers = {"Content-Type": "application/json"}
    assert code(await seller.post("/api/v1/sync", content=body, headers=headers)) == expected


@pytest.mark.night
async def test_the_key_form_knows_only_lines_of_the_account(a_seller):
    seller = await a_seller(lines=["magic"])
    key = await seller.put_object(ONE_CARD)
    assert code(await seller.send_key(key, product_line="pokemon")) == (422, "invalid_product_line")
    assert (await seller.send_key(key, product_line="magic")).status_code == 202
    await seller.service.run_jobs()


async def put_for(seller, line, data=ONE_CARD) -> str:
    """The key of a file that was asked for with a product line."""
    slot = await seller.reserve(product_line=line)
    assert (await seller.put(slot["upload_url"], data)).status_code == 200
    return slot["key"]


async def lines_of(seller) -> dict[int, str]:
    return {card["marketplace_id"]: card["product_line"] for card in await seller.cards()}


@pytest.mark.night
@pytest.mark.day
async def test_the_line_of_the_upload_request_serves_rows_whose_cell_is_blank(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    blank = a_csv(a_row(1, line=""))
    await seller.import_key(await put_for(seller, "pokemon", blank))
    assert await lines_of(seller) == {1: "pokemon"}
    await seller.import_key(
        await put_for(seller, "pokemon", a_csv(a_row(2, line=""))), product_line="magic"
    )
    assert await lines_of(seller) == {1: "pokemon", 2: "magic"}
    await seller.import_key(await seller.put_object(a_csv(a_row(3, line=""), a_row(2))))
    assert (await lines_of(seller))[3] == "magic"


async def test_the_line_is_asked_for_once_more_when_the_key_is_named(a_seller):
    """It may be switched off meanwhile; and the same key, named twice at once, is one upload."""
    seller = await a_seller(lines=["magic", "pokemon"])
    key = await put_for(seller, "pokemon", a_csv(a_row(1, line="")))
    off = "UPDATE account SET product_lines = '{magic}' WHERE seller_id = :id"
    await seller.service.sql(seller.id, off, id=seller.id)
    assert code(await seller.send_key(key)) == (422, "invalid_product_line")
    on = "UPDATE account SET product_lines = '{magic, pokemon}' WHERE seller_id = :id"
    await seller.service.sql(seller.id, on, id=seller.id)
    answers = await asyncio.gather(*(seller.send_key(key) for _ in range(3)))
    assert len({answer.json()["upload_id"] for answer in answers}) == 1
    await seller.service.run_jobs()
    assert await lines_of(seller) == {1: "pokemon"}
    assert (
        await seller.service.sql(
            seller.id, "SELECT 1 FROM upload_request WHERE seller_id = :id", id=seller.id
        )
        == []
    )


async def test_a_line_is_remembered_as_long_as_an_object_that_nobody_names(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    await seller.reserve(product_line="pokemon")
    clock.shift(timedelta(days=1, minutes=1))
    kept = (await seller.reserve(product_line="magic"))["key"]
    rows = await seller.service.sql(
        seller.id, "SELECT key FROM upload_request WHERE seller_id = :id", id=seller.id
    )
    assert rows == [{"key": kept}]


@pytest.mark.night
async def test_a_seller_without_the_pipeline_gets_neither_call(a_seller):
    seller = await a_seller()
    key = await seller.put_object(ONE_CARD)
    await seller.set(object_store_pipeline_enabled=False)
    disabled = (403, "object_store_pipeline_disabled")
    assert code(await seller.post("/api/v1/sync/upload-request", json={})) == disabled
    assert code(await seller.send_key(key)) == disabled
    # The raw form is what is left, and works.
    assert (await seller.import_csv(ONE_CARD))["state"] == "done"


@pytest.mark.parametrize(
    ("data", "expected", "words"),
    [
        (gzip.compress(ONE_CARD)[:-5], "invalid_csv", "gzip"),
        (b"\x1f\x8b", "invalid_csv", "gzip"),
        (b"no header\r\n", "invalid_csv", "isn't a TCGplayer pricing export"),
        (ONE_CARD.split(b"\r\n")[0] + b"\r\n", "invalid_csv", "line 2"),
        (b"", "invalid_csv", "isn't a TCGplayer pricing export"),
        (gzip.compress(bytes(50_000_001), 1), "decompressed_too_large", "50,000,000"),
    ],
    ids=["cut-gzip", "two-bytes", "no-header", "only-header", "empty", "bomb"],
)
async def test_an_object_that_cannot_be_read_ends_its_upload_as_failed(
    a_seller, data, expected, words
):
    seller = await a_seller()
    report = await seller.import_key(await seller.put_object(data))
    assert (report["state"], report["error"]["code"], report["applied"]) == ("failed", expected, 0)
    assert words in report["error"]["message"]
    status = (await seller.get("/api/v1/status")).json()
    assert (status["phase"], status["sync_in_progress"], status["last_sync_at"]) == (
        "idle",
        False,
        None,
    )


async def test_accepted_bytes_no_longer_depend_on_the_object(a_seller):
    seller = await a_seller()
    key = await seller.put_object(ONE_CARD)
    upload_id = (await seller.send_key(key)).json()["upload_id"]
    path = seller.service.settings.data_dir / "objects" / key
    path.unlink()
    path.write_bytes(a_csv(a_row(666)))
    await seller.service.run_jobs()
    assert (await seller.report(upload_id))["state"] == "done"
    assert [card["marketplace_id"] for card in await seller.cards()] == [1]
