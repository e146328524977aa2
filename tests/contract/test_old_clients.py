"""Who uses something retired hears since when, until when and what to use instead; nobody else does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from builders import a_csv, a_row
from cardsync.web import retired
from cardsync.web.retired import CSV_IN_BODY, RETIRED

PAGE = Path(__file__).parents[2] / "docs" / "old-clients.md"
CSV = a_csv(a_row(1))


def printed() -> list[str]:
    return [
        f"| `{one.name}` | `{one.method} {one.path}` | {one.part or 'the whole route'}"
        f" | {one.since} | {one.sunset} | `{one.successor}` |"
        for one in RETIRED
    ]


def test_the_page_shows_the_table():
    lines = PAGE.read_text().partition("## What is retired")[2].partition("\n## ")[0].splitlines()
    assert [line for line in lines if line.startswith("| `")] == printed()


@pytest.mark.parametrize("one", RETIRED, ids=lambda one: one.name)
def test_a_retired_thing_works_for_a_year_and_says_so(one):
    headers = {name.decode(): value.decode() for name, value in one.headers()}
    since = datetime.fromtimestamp(int(headers["deprecation"].removeprefix("@")), UTC)
    until = parsedate_to_datetime(headers["sunset"])
    assert (since.date(), until.date()) == (one.since, one.sunset)
    assert until - since >= timedelta(days=365)
    assert f'<{one.successor}>; rel="successor-version"' in headers["link"]
    assert 'rel="deprecation"' in headers["link"]


def test_a_route_that_is_retired_as_a_whole_is_known_by_its_address():
    whole = replace(CSV_IN_BODY, part=None)
    assert retired.whole_routes((CSV_IN_BODY, whole)) == {("POST", "/api/v1/sync"): whole}


async def uses(seller) -> float:
    return retired.USES.labels(CSV_IN_BODY.name)._value.get()


async def test_the_raw_form_says_that_it_is_retired_and_is_counted(a_seller):
    seller = await a_seller()
    before = await uses(seller)
    answer = await seller.post("/api/v1/sync", content=CSV, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 202
    told = {name.decode(): value.decode() for name, value in CSV_IN_BODY.headers()}
    assert {name: answer.headers.get(name) for name in told} == told
    refused = await seller.post("/api/v1/sync", content=b"no csv")
    assert (refused.status_code, refused.headers["deprecation"]) == (422, told["deprecation"])
    assert await uses(seller) == before + 2


async def test_whoever_uses_what_holds_hears_nothing(a_seller):
    seller = await a_seller()
    slot = (await seller.post("/api/v1/sync/upload-request")).json()
    put = await seller.put(slot["upload_url"], CSV)
    by_key = await seller.post("/api/v1/sync", json={"key": slot["key"]})
    # Where an operator switched the key flow off, there is nothing else to use.
    without = await a_seller(object_store_pipeline_enabled=False)
    raw = await without.post("/api/v1/sync", content=CSV, headers={"Content-Type": "text/csv"})
    answers = [put, by_key, raw, await seller.get("/api/v1/sync/pending")]
    assert [answer.status_code for answer in answers] == [200, 202, 202, 200]
    for answer in answers:
        assert not {"deprecation", "sunset", "link"} & set(answer.headers)
