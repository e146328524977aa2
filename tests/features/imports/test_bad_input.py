"""Hostile and broken uploads: each gets its specified answer, the service stays well and no other
seller notices.
"""

import contextlib
import gzip
import json
import zlib
from datetime import timedelta
from decimal import Decimal

import pytest

from builders import HEADER, SellerBuilder, a_csv, a_row, read_csv
from cardsync.platform import clock

HEADER_LINE = (",".join(HEADER) + "\r\n").encode()
ONE_CARD = a_csv(a_row(1))
NEIGHBOURS_FILE = a_csv(*(a_row(n) for n in range(1, 4)))


@pytest.fixture(scope="module")
async def neighbour(service):
    """Another seller with an inventory of its own."""
    seller = await SellerBuilder(service)()
    await seller.import_csv(NEIGHBOURS_FILE)
    before = await seller.cards()
    yield seller
    report = await seller.import_csv(NEIGHBOURS_FILE)
    assert (report["state"], report["applied"]) == ("done", 3)
    assert await seller.cards() == before


@pytest.fixture(autouse=True)
async def _all_is_well_afterwards(service, neighbour):
    """After every test the service is healthy, and another seller still has its cards and is
    served.
    """
    before = await neighbour.cards()
    yield
    clock.reset()
    async with service.client() as http:
        assert (await http.get("/healthz")).status_code == 200
        ready = await http.get("/readyz")
    assert ready.json()["checks"]["database"] == "ok", ready.text
    assert await neighbour.cards() == before
    assert len(read_csv((await neighbour.export()).content)) == 3


@pytest.fixture(scope="module")
def bomb():
    """A gigabyte of zeros in one megabyte of gzip: after a full flush a compressor repeats
    itself.
    """
    engine = zlib.compressobj(9, wbits=-15)
    megabyte = bytes(1 << 20)
    begin, again = (engine.compress(megabyte) + engine.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    checksum = 0
    for _ in range(1024):
        checksum = zlib.crc32(megabyte, checksum)
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    tail = checksum.to_bytes(4, "little") + (1 << 30).to_bytes(4, "little")
    return head + begin + again * 1023 + engine.flush() + tail


@pytest.fixture(scope="module")
def long_line():
    """One line of 40 MB, well compressible."""
    return b"x" * 40_000_000


def refusal(answer):
    assert set(answer.json()) == {"error", "code"}, answer.text
    return answer.status_code, answer.json()["code"]


async def send(seller, data, kind):
    return await seller.post(
        "/api/v1/sync", content=data, headers={"Content-Type": kind} if kind else {}
    )


async def uploads_of(seller):
    return await seller.service.sql(
        seller.id, "SELECT * FROM upload WHERE seller_id = :id", id=seller.id
    )


async def nothing_was_accepted(seller):
    return (
        await uploads_of(seller) == []
        and (await seller.get("/api/v1/status")).json()["phase"] == "idle"
    )


@pytest.mark.parametrize(
    "data",
    [
        ONE_CARD,
        b"",
        b"\x1f",
        b"\x1f\x8b",
        gzip.compress(ONE_CARD) + b"more",
        gzip.compress(ONE_CARD)[:-9] + b"\xff" * 9,
    ],
    ids=["csv", "empty", "one-byte", "two-bytes", "followed-by-more", "damaged"],
)
async def test_what_is_not_whole_gzip_is_invalid_gzip_where_gzip_was_announced(a_seller, data):
    seller = await a_seller()
    assert refusal(await send(seller, data, "application/gzip")) == (422, "invalid_gzip")
    assert await nothing_was_accepted(seller)


@pytest.mark.parametrize("kind", ["text/csv", "application/octet-stream", None])
async def test_damaged_gzip_is_invalid_csv_where_gzip_was_not_announced(a_seller, kind):
    seller = await a_seller()
    answer = await send(seller, gzip.compress(ONE_CARD)[:-5], kind)
    assert refusal(answer) == (422, "invalid_csv")
    assert "gzip" in answer.json()["error"]


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["text/csv", "application/octet-stream", None])
@pytest.mark.parametrize("data", [ONE_CARD, gzip.compress(ONE_CARD)], ids=["plain", "gzip"])
async def test_without_an_announcement_gzip_and_plain_are_both_read(a_seller, kind, data):
    seller = await a_seller()
    assert (await send(seller, data, kind)).status_code == 202
    await seller.service.run_jobs()
    assert len(await seller.cards()) == 1


@pytest.mark.parametrize("kind", ["application/gzip", "text/csv"])
async def test_a_bomb_is_decompressed_too_large(a_seller, bomb, kind):
    seller = await a_seller()
    assert len(bomb) < 2_000_000
    assert refusal(await send(seller, bomb, kind)) == (413, "decompressed_too_large")
    assert await nothing_was_accepted(seller)


async def test_a_bomb_that_was_put_fails_its_upload(a_seller, bomb):
    seller = await a_seller()
    report = await seller.import_key(await seller.put_object(bomb))
    assert (report["state"], report["error"]["code"]) == ("failed", "decompressed_too_large")


@pytest.mark.night
async def test_a_gzip_of_200000_members_is_read_as_one_file(a_seller):
    seller = await a_seller()
    body = (
        gzip.compress(HEADER_LINE)
        + gzip.compress(b"") * 199_998
        + gzip.compress(ONE_CARD[len(HEADER_LINE) :])
    )
    started = clock.monotonic()
    assert (await send(seller, body, "application/gzip")).status_code == 202
    await seller.service.run_jobs()
    assert len(await seller.cards()) == 1
    # A reader that copies the rest for every member needs minutes.
    assert clock.monotonic() - started < 15


async def test_200000_empty_members_are_an_empty_file(a_seller):
    seller = await a_seller()
    assert refusal(await send(seller, gzip.compress(b"") * 200_000, "application/gzip")) == (
        422,
        "invalid_csv",
    )


@pytest.mark.parametrize("kind", ["application/gzip", None])
@pytest.mark.parametrize("declared", [True, False], ids=["content-length", "chunked"])
async def test_a_body_over_ten_million_bytes_is_payload_too_large(a_seller, kind, declared):
    seller = await a_seller()

    async def chunks():
        yield HEADER_LINE
        for _ in range(10):
            yield b"x" * 1_000_000

    body = HEADER_LINE.ljust(10_000_001, b"x") if declared else chunks()
    assert refusal(await send(seller, body, kind)) == (413, "payload_too_large")
    assert await nothing_was_accepted(seller)


async def test_one_byte_over_fifty_million_decompressed_is_too_large(a_seller):
    seller = await a_seller()
    body = gzip.compress(ONE_CARD.ljust(50_000_001), 1)
    assert refusal(await send(seller, body, "application/gzip")) == (413, "decompressed_too_large")


@pytest.mark.night
async def test_fifty_million_bytes_decompressed_are_read(a_seller):
    seller = await a_seller()
    answer = await send(seller, gzip.compress(ONE_CARD.ljust(50_000_000), 1), "application/gzip")
    assert answer.status_code == 202
    await seller.service.run_jobs()
    assert len(await seller.cards()) == 1


async def test_an_upload_that_breaks_off_is_not_accepted(a_seller):
    seller = await a_seller()
    whole = gzip.compress(ONE_CARD)
    messages = [
        {"type": "http.request", "body": whole[:50], "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http",
        "path": "/api/v1/sync", "raw_path": b"/api/v1/sync", "query_string": b"", "root_path": "",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [
            (b"authorization", f"Bearer {seller.api_key}".encode()),
            (b"content-type", b"application/gzip"),
            (b"content-length", str(len(whole)).encode()),
        ],
    }  # fmt: skip
    sent = []

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def keep(message):
        sent.append(message)

    with contextlib.suppress(Exception):
        await seller.service.app(scope, receive, keep)
    assert not any(message.get("status") == 202 for message in sent)
    assert await nothing_was_accepted(seller)
    incoming = seller.service.settings.data_dir / "objects" / "incoming"
    assert list(incoming.iterdir()) == []


async def test_a_file_cut_off_within_its_last_row_keeps_the_others_and_makes_no_card_gone(a_seller):
    seller = await a_seller()
    data = a_csv(*(a_row(n) for n in range(1, 5)))
    await seller.import_csv(data)
    report = await seller.import_csv(data[:-70])
    assert (report["state"], report["applied"], report["rejected_count"], report["gone"]) == (
        "done",
        3,
        1,
        0,
    )
    assert (report["rejected"][0]["line"], report["rejected"][0]["code"]) == (5, "malformed_row")


def a_wide_file(columns):
    extra = [f"Extra {n}" for n in range(columns - len(HEADER))]
    return a_csv(a_row(1, **dict.fromkeys(extra, "x")), header=HEADER + extra)


NO_EXPORT = "this isn't a TCGplayer pricing export"
UNUSABLE = {
    "not a header": (ONE_CARD[len(HEADER_LINE) :], NO_EXPORT),
    "other columns": (b"a,b,c\r\n1,2,3\r\n", NO_EXPORT),
    "prose": (b"Dear Sir or Madam,\r\n", NO_EXPORT),
    "json": (b'[{"TCGplayer Id": 1}]', NO_EXPORT),
    "empty": (b"", NO_EXPORT),
    "byte order mark alone": (b"\xef\xbb\xbf", NO_EXPORT),
    "no quantity column": (
        a_csv(a_row(1), header=[name for name in HEADER if name != "Total Quantity"]),
        NO_EXPORT,
    ),
    "NUL in the header": (ONE_CARD.replace(b"TCGplayer Id", b"TCGplayer\0Id"), NO_EXPORT),
    "unclosed quote in the header": (b'"' + ONE_CARD, NO_EXPORT),
    "only a header": (HEADER_LINE, "line 2"),
    "only a header without its line end": (HEADER_LINE.strip(), "line 2"),
    "only a header and blank lines": (HEADER_LINE + b"\r\n \r\n\r\n", "line 2"),
    "10,000 columns": (a_wide_file(10_000), "line 1"),
    "201 columns": (a_wide_file(201), "line 1"),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_file_that_is_no_inventory_is_invalid_csv_naming_the_line(a_seller, name):
    seller = await a_seller()
    data, line = UNUSABLE[name]
    assert refusal(await send(seller, data, "text/csv")) == (422, "invalid_csv")
    answer = await send(seller, gzip.compress(data), "application/gzip")
    assert refusal(answer) == (422, "invalid_csv")
    assert line in answer.json()["error"]
    assert await nothing_was_accepted(seller)


@pytest.mark.parametrize(
    "name", ["not a header", "NUL in the header", "only a header and blank lines", "10,000 columns"]
)
async def test_an_object_that_is_no_inventory_fails_its_upload_naming_the_line(a_seller, name):
    seller = await a_seller()
    data, line = UNUSABLE[name]
    report = await seller.import_key(await seller.put_object(data))
    assert (report["state"], report["error"]["code"]) == ("failed", "invalid_csv")
    assert line in report["error"]["message"]


async def test_two_hundred_columns_are_read(a_seller):
    seller = await a_seller()
    assert (await seller.import_csv(a_wide_file(200)))["applied"] == 1


async def test_a_line_of_40_mb_is_no_header(a_seller, long_line):
    seller = await a_seller()
    answer = await send(seller, gzip.compress(long_line, 1), "application/gzip")
    assert refusal(answer) == (422, "invalid_csv")
    assert "line 1" in answer.json()["error"]


@pytest.mark.night
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["bare", "in an open quote"])
async def test_a_line_of_40_mb_among_the_rows_is_kept_out(a_seller, long_line, quote):
    seller = await a_seller()
    data = a_csv(a_row(1)) + quote + long_line + b"\r\n" + a_csv(a_row(2))[len(HEADER_LINE) :]
    report = await seller.import_csv(data)
    assert (report["state"], report["rows"], report["applied"], report["rejected_count"]) == (
        "done",
        3,
        2,
        1,
    )
    rejected = report["rejected"][0]
    assert (rejected["line"], rejected["code"]) == (3, "malformed_row")
    assert len(rejected["message"]) < 200


@pytest.mark.night
async def test_a_file_of_line_ends_alone_has_no_row(a_seller):
    seller = await a_seller()
    report = await seller.import_key(await seller.put_object(HEADER_LINE + b"\r\n" * 1_000_000))
    assert (report["state"], report["error"]["code"]) == ("failed", "invalid_csv")


@pytest.mark.night
async def test_a_nul_byte_keeps_its_row_out(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1, name="Sol\0Ring"), a_row(2)))
    assert (report["applied"], report["rejected_count"]) == (1, 1)
    assert (
        report["rejected"][0]["line"],
        report["rejected"][0]["column"],
        report["rejected"][0]["code"],
    ) == (
        2,
        "Product Name",
        "bad_text",
    )


@pytest.mark.night
async def test_stray_latin_1_is_read_and_goes_out_as_utf_8(a_seller):
    seller = await a_seller()
    latin = a_csv(a_row(1, name="Séance – “Jötun”")).decode().encode("cp1252")
    utf = a_csv(a_row(2, name="Lim-Dûl’s Vault ★"))[len(HEADER_LINE) :]
    report = await seller.import_csv(latin + utf)
    assert (report["applied"], report["rejected_count"]) == (2, 0)
    rows = read_csv((await seller.export()).content)
    assert [row["Product Name"] for row in rows] == ["Séance – “Jötun”", "Lim-Dûl’s Vault ★"]


async def test_of_a_duplicate_id_the_last_row_wins_and_it_is_counted(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, quantity=1), a_row(2), a_row(1, quantity=5), a_row(1, quantity=3))
    )
    assert (report["rows"], report["applied"], report["duplicates"], report["rejected_count"]) == (
        4,
        2,
        2,
        0,
    )
    assert [(card["marketplace_id"], card["quantity"]) for card in await seller.cards()] == [
        (1, 3),
        (2, 1),
    ]


@pytest.mark.night
async def test_a_duplicate_that_is_kept_out_does_not_replace_the_good_row(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1, quantity=4), a_row(1, quantity=-4)))
    assert (report["applied"], report["rejected_count"]) == (1, 1)
    assert [card["quantity"] for card in await seller.cards()] == [4]


@pytest.mark.night
async def test_an_amount_in_another_dress_is_read(a_seller):
    seller = await a_seller()
    cells = {
        "1,234.50": "1234.5",
        "$5": "5",
        "$1,234.50": "1234.5",
        " 2.50 ": "2.5",
        "0.00005": "0.0001",
        "12345678.1234": "12345678.1234",
    }
    report = await seller.import_csv(
        a_csv(*(a_row(n, market=cell) for n, cell in enumerate(cells, start=1)))
    )
    assert (report["applied"], report["noted_count"]) == (6, 0)
    assert [card["market"] for card in await seller.cards()] == [
        Decimal(amount) for amount in cells.values()
    ]


async def test_blank_zero_and_negative_are_no_price(a_seller):
    seller = await a_seller()
    cells = ["", "0", "0.00", "-1.00", "$0"]
    report = await seller.import_csv(
        a_csv(*(a_row(n, market=cell, low=cell) for n, cell in enumerate(cells, start=1)))
    )
    assert (report["applied"], report["noted_count"], report["blocked"]) == (
        5,
        0,
        {"no_usable_reference": 5},
    )
    assert [(card["market"], card["low"]) for card in await seller.cards()] == [(None, None)] * 5


@pytest.mark.night
async def test_what_is_no_amount_is_no_price_noted_and_the_row_kept(a_seller):
    seller = await a_seller()
    cells = [
        "NaN",
        "1e9",
        "inf",
        "-Infinity",
        "five",
        "1.2.3",
        "12,34.5",
        "0x10",
        "١٢",
        "1_000",
        "123456789012",
        "--5",
        "=",
    ]
    report = await seller.import_csv(
        a_csv(*(a_row(n, market=cell) for n, cell in enumerate(cells, start=1)), a_row(99))
    )
    assert (report["state"], report["applied"], report["rejected_count"]) == ("done", 14, 0)
    assert report["noted_count"] == len(cells)
    assert [(row["line"], row["column"], row["code"]) for row in report["noted"]] == [
        (line, "TCG Market Price", "bad_price") for line in range(2, 15)
    ]
    assert all(cell in row["message"] for cell, row in zip(cells, report["noted"], strict=True))
    assert [card["market"] for card in await seller.cards()] == [None] * 13 + [Decimal("1.2")]


async def test_a_quantity_that_is_no_whole_number_keeps_its_row_out(a_seller):
    seller = await a_seller()
    cells = ["-1", "two", "1.5", "1e3", "99999999999", "٣"]
    await seller.import_csv(a_csv(*(a_row(n, quantity=4) for n in range(1, 8))))
    before = await seller.cards()
    rows = [a_row(n, quantity=cell, market="9.99") for n, cell in enumerate(cells, start=1)]
    report = await seller.import_csv(a_csv(*rows, a_row(7, quantity=4)))
    assert (report["applied"], report["skipped"], report["rejected_count"], report["gone"]) == (
        1,
        6,
        6,
        0,
    )
    assert [(row["line"], row["column"], row["code"]) for row in report["rejected"]] == [
        (line, "Total Quantity", "bad_quantity") for line in range(2, 8)
    ]
    assert await seller.cards() == before


async def test_an_id_that_is_no_positive_whole_number_keeps_its_row_out(a_seller):
    seller = await a_seller()
    cells = ["", "0", "-7", "seven", "1.5", "9" * 30]
    report = await seller.import_csv(
        a_csv(*({**a_row(2), "TCGplayer Id": cell} for cell in cells), a_row(1))
    )
    assert (report["applied"], report["rejected_count"]) == (1, 6)
    assert [(row["line"], row["column"], row["code"]) for row in report["rejected"]] == [
        (line, "TCGplayer Id", "bad_id") for line in range(2, 8)
    ]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("label", "code"),
    [("Chess", "unknown_product_line"), ("Lorcana TCG", "product_line_not_enabled")],
)
async def test_a_row_of_a_line_that_the_account_lacks_is_kept_out(a_seller, label, code):
    seller = await a_seller(lines=["magic", "pokemon"])
    report = await seller.import_csv(a_csv(a_row(1), a_row(2, line=label)))
    assert (report["state"], report["applied"], report["rejected_count"]) == ("done", 1, 1)
    rejected = report["rejected"][0]
    assert (rejected["line"], rejected["column"], rejected["code"]) == (3, "Product Line", code)
    assert label in rejected["message"]


@pytest.mark.night
async def test_a_file_of_nothing_but_unknown_lines_changes_nothing(a_seller):
    seller = await a_seller(lines=["magic"])
    await seller.import_csv(a_csv(a_row(1), a_row(2)))
    before = await seller.cards()
    report = await seller.import_csv(a_csv(a_row(1, line="Chess"), a_row(3, line="Chess")))
    assert (report["state"], report["rows"], report["applied"], report["rejected_count"]) == (
        "done",
        2,
        0,
        2,
    )
    assert await seller.cards() == before


async def test_an_empty_header_names_no_line(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    report = await seller.import_csv(
        a_csv(a_row(1, line=""), a_row(2, line="Pokemon")), **{"X-Product-Line": ""}
    )
    assert (report["state"], report["applied"]) == ("done", 2)


@pytest.mark.parametrize("line", ["chess", "Magic", "lorcana", " "])
async def test_a_header_that_names_no_line_of_the_account_is_invalid_product_line(a_seller, line):
    seller = await a_seller(lines=["magic"])
    answer = await seller.upload(ONE_CARD, **{"X-Product-Line": line})
    assert refusal(answer) == (422, "invalid_product_line")
    assert await nothing_was_accepted(seller)


async def test_more_than_a_thousand_bad_rows_are_all_counted_and_a_thousand_listed(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1), *(a_row(n, quantity="x") for n in range(2, 1203)))
    )
    assert (report["applied"], report["rejected_count"], len(report["rejected"])) == (1, 1201, 1000)
    assert [row["line"] for row in report["rejected"]] == list(range(3, 1003))


async def test_another_sellers_object_stays_theirs(a_seller, neighbour):
    seller = await a_seller()
    theirs = await neighbour.put_object(NEIGHBOURS_FILE)
    assert refusal(await seller.send_key(theirs)) == (422, "invalid_object_key")
    assert (await neighbour.import_key(theirs))["state"] == "done"
    assert refusal(await seller.send_key(theirs)) == (422, "invalid_object_key")
    assert await nothing_was_accepted(seller)


async def test_a_key_that_was_never_uploaded_is_invalid(a_seller):
    seller = await a_seller()
    key = (await seller.reserve())["key"]
    assert refusal(await seller.send_key(key)) == (422, "invalid_object_key")
    assert await nothing_was_accepted(seller)


async def test_an_expired_url_takes_nothing(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    clock.shift(timedelta(minutes=11))
    assert refusal(await seller.put(slot["upload_url"], ONE_CARD)) == (403, "url_expired")
    assert refusal(await seller.send_key(slot["key"])) == (422, "invalid_object_key")


async def test_a_used_url_takes_nothing_more(a_seller):
    seller = await a_seller()
    slot = await seller.reserve()
    await seller.put(slot["upload_url"], ONE_CARD)
    assert refusal(await seller.put(slot["upload_url"], b"other")) == (409, "already_used")
    # Not even while or after it was imported.
    await seller.import_key(slot["key"])
    assert refusal(await seller.put(slot["upload_url"], b"other")) == (409, "already_used")


async def test_an_uploads_report_is_its_sellers_alone(a_seller, neighbour):
    seller = await a_seller()
    report = await seller.import_csv(ONE_CARD)
    answer = await neighbour.get(f"/api/v1/uploads/{report['id']}")
    assert refusal(answer) == (404, "not_found")
    assert refusal(await seller.get(f"/api/v1/uploads/{2**63}")) == (404, "not_found")


@pytest.mark.night
async def test_every_refusal_in_a_report_can_be_read_as_json_whatever_the_cell_held(a_seller):
    seller = await a_seller()
    nasty = [
        '"',
        "\\",
        "\x01\x1b[31m",
        "<script>",
        "\N{RIGHT-TO-LEFT OVERRIDE}1",
        "'; DROP TABLE card; --",
        "%s{0}",
    ]
    report = await seller.import_csv(a_csv(a_row(1), *(a_row(9, quantity=cell) for cell in nasty)))
    assert report["rejected_count"] == len(nasty)
    assert json.loads(json.dumps(report))["rejected"] == report["rejected"]


@pytest.mark.parametrize("id", [2**63, -(2**63) - 1, 10**40])
async def test_an_id_larger_than_any_is_nobodys(a_seller, id):
    seller = await a_seller()
    for path in (
        "pricing/rollbacks",
        "pricing/runs",
        "pricing/rules",
        "pricing/sales",
        "cards",
        "pull_sessions",
        "v1/pricing/explain",
    ):
        assert refusal(await seller.get(f"/api/{path}/{id}")) == (404, "not_found"), path
    for path in (
        f"pricing/rollbacks/{id}/cancel",
        f"pricing/runs/{id}/confirm",
        f"orders/{id}/dismiss",
    ):
        assert refusal(await seller.post(f"/api/{path}")) == (404, "not_found"), path
    assert refusal(await seller.http.put(f"/api/pricing/pins/{id}", json={"price": "1.00"})) == (
        404,
        "not_found",
    )
    assert (await seller.service.client().get(f"/api/pricing/runs/{id}")).status_code == 401


@pytest.mark.night
async def test_a_body_that_is_missing_is_told_so(a_seller):
    seller = await a_seller()
    answer = await seller.post(
        "/api/pricing/rollbacks", content=b"", headers={"Content-Type": "application/json"}
    )
    assert refusal(answer) == (422, "invalid_payload")
    assert answer.json()["error"] == "the body is missing"
    assert (
        (await seller.post("/api/pricing/rollbacks", json=[]))
        .json()["error"]
        .startswith("body: must be an object, not a list")
    )
