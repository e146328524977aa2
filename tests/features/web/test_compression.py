"""Text is sent as gzip to clients that take it; the length of an answer gives nothing away of its
secrets.
"""

import gzip
import re

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.access import tokens
from cardsync.dashboard.assets import asset_url
from cardsync.web.compression import packed, takes_gzip

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
    headers, _ = await _wire(browser.http, "/healthz", "gzip")
    assert "content-encoding" not in headers
    for path in ("/api/v1/status", "/api/cards"):
        with_a_key = await seller.get(path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in with_a_key.headers
        assert "Accept-Encoding" not in with_a_key.headers.get("vary", "")
    headers, _ = await _wire(browser.http, "/cards/export", "gzip")
    assert "content-encoding" not in headers


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
