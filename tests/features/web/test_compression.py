"""Text is sent as gzip to clients that take it; the length of an answer gives nothing away of its
secrets.
"""

import gzip
import json
import re

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.access import tokens
from cardsync.dashboard.assets import asset_url
from cardsync.web.compression import compressing, packed, takes_gzip

TOKEN = re.compile(r'name="csrf-token" content="([^"]+)"')


async def _wire(http, path, accepted):
    """Return the headers and the bytes as they come."""
    headers = {"Accept-Encoding": accepted}
    async with http.stream("GET", path, headers=headers, extensions={"raw": True}) as answer:
        return answer.headers, b"".join([part async for part in answer.aiter_raw()])


async def test_pages_and_json_are_small_on_the_wire(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, name=f"Card {n}") for n in range(60))))
    browser = await signed_in(seller)
    for path in ("/cards", "/api/cards", "/today", asset_url("app.css"), asset_url("js/app.js")):
        headers, small = await _wire(browser.http, path, "br, gzip")
        assert headers.get("content-encoding") == "gzip", path
        assert int(headers["content-length"]) == len(small)
        assert "Accept-Encoding" in headers["vary"]
        plain_headers, plain = await _wire(browser.http, path, "identity")
        assert "content-encoding" not in plain_headers, path
        assert "Accept-Encoding" in plain_headers["vary"]
        assert len(small) < len(plain) / 2
        if path.startswith(("/api", "/static")):
            assert gzip.decompress(small) == plain


async def test_what_comes_in_pieces_and_what_is_short_goes_out_as_it_is(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(60))))
    browser = await signed_in(seller)
    for http, path in (
        (browser.http, "/healthz"),
        (seller.http, "/api/v1/sync/pending"),
        (browser.http, "/cards/export"),
        (seller.http, "/api/v1/export/price-updates"),
    ):
        headers, _ = await _wire(http, path, "gzip")
        assert "content-encoding" not in headers, path


async def test_json_over_a_kilobyte_is_small_for_keys_as_well(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, name=f"Card {n}") for n in range(60))))
    sizes = {}
    for path in ("/api/cards?per_page=1", "/api/cards", "/api/v1/orders", "/openapi.json"):
        plain_headers, plain = await _wire(seller.http, path, "identity")
        headers, sent = await _wire(seller.http, path, "gzip")
        packed_ = headers.get("content-encoding") == "gzip"
        assert packed_ is (len(plain) > 1_000), (path, len(plain))
        assert ("Accept-Encoding" in headers.get("vary", "")) is packed_
        assert ("Accept-Encoding" in plain_headers.get("vary", "")) is packed_
        assert json.loads(gzip.decompress(sent) if packed_ else sent).keys()
        sizes[path] = len(plain)
    assert min(sizes.values()) < 1_000 < max(sizes.values())


async def test_a_head_says_what_a_get_would(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(60))))
    for accepted, encoding in (("gzip", "gzip"), ("identity", None)):
        answer = await seller.http.head("/api/cards", headers={"Accept-Encoding": accepted})
        assert answer.headers.get("content-encoding") == encoding
        assert "Accept-Encoding" in answer.headers["vary"]
        assert answer.content == b""


async def test_what_another_site_has_asked_for_is_not_compressed(a_seller):
    browser = await signed_in(await a_seller())
    for site, takes in (
        ("same-origin", True), ("none", True), ("cross-site", False), ("same-site", False),
    ):  # fmt: skip
        headers = {"Accept-Encoding": "gzip", "Sec-Fetch-Site": site}
        answer = await browser.http.get("/cards", headers=headers)
        assert answer.status_code == 200
        assert (answer.headers.get("content-encoding") == "gzip") is takes, site
        assert "Accept-Encoding" in answer.headers["vary"]


BIG = b'{"a": "%s"}' % (b"x" * 5_000)
OF_ANSWERS = {
    "weak": ([(b"content-type", b"application/json"), (b"etag", b'W/"1"')], [BIG], True),
    "strong": ([(b"content-type", b"application/json"), (b"etag", b'"1"')], [BIG], False),
    "packed": (
        [(b"content-type", b"application/json"), (b"content-encoding", b"br")],
        [BIG],
        False,
    ),
    "problem": ([(b"content-type", b"application/problem+json")], [BIG], True),
    "stream": ([(b"content-type", b"text/event-stream")], [BIG, BIG], False),
    "pieces": ([(b"content-type", b"application/json")], [BIG, BIG], False),
    "csv": ([(b"content-type", b"text/csv")], [BIG], False),
    "nothing": ([(b"content-type", b"application/json"), (b"etag", b'W/"1"')], [b""], False),
}


@pytest.mark.parametrize("case", OF_ANSWERS)
async def test_what_is_packed_and_what_goes_out_at_once(case):
    headers, bodies, takes = OF_ANSWERS[case]
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for at, body in enumerate(bodies):
            before = len(sent)
            more = at + 1 < len(bodies)
            await send({"type": "http.response.body", "body": body, "more_body": more})
            assert len(sent) > before, "a part of a body does not wait for the next one"

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(b"accept-encoding", b"gzip")]}
    await compressing(app)(scope, None, send)
    got = dict(sent[0]["headers"])
    body = b"".join(message["body"] for message in sent[1:])
    assert (got.get(b"content-encoding") == b"gzip") is takes
    assert (gzip.decompress(body) if takes else body) == b"".join(bodies)
    assert got.get(b"etag") == dict(headers).get(b"etag")


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5, br", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("x-gzip2", False),
    ],
)
def test_an_accept_encoding_is_read_as_it_is_meant(accepted, takes):
    assert takes_gzip(accepted) is takes


def test_the_length_of_a_packed_body_wanders():
    body = b"the same words again and again " * 50
    made = [packed(body) for _ in range(60)]
    assert {gzip.decompress(one) for one in made} == {body}
    assert len({len(one) for one in made}) > 10


async def test_a_token_never_stands_twice_in_the_same_bytes_and_is_right_each_time(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    told = [TOKEN.search((await browser.get("/lists")).text)[1] for _ in range(3)]
    assert len(set(told)) == 3
    for n, token in enumerate(told):
        form = {"csrf_token": token, "name": f"List {n}"}
        assert (await browser.http.post("/lists", data=form)).status_code == 303
    other = await signed_in(await a_seller())
    refused = await other.http.post("/lists", data={"csrf_token": told[0], "name": "Theirs"})
    assert refused.status_code == 403


def test_damaged_tokens_are_refused():
    session = tokens.new_token()
    right = tokens.csrf_token(session)
    assert tokens.csrf_is_right(session, right)
    for wrong in (None, "", "é", "A", right[:-6], right[4:], right[:43], "A" * 88, "AAAA" + right):
        assert not tokens.csrf_is_right(session, wrong), wrong
