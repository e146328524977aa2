"""What is asked in two ways is answered alike: HEAD everywhere as GET without its body, and each
parameter of several values in both of its forms.
"""

from __future__ import annotations

import re

import psycopg
import pytest

from browsers import operates, signed_in
from builders import a_row, a_shop
from cards_builder import a_list, card_ids
from cardsync.platform.database.urls import libpq_url
from cardsync.tables import metadata
from cardsync.web.compression import LONGEST_NAME
from dashboard_builder import filled_shop
from notices_builder import of_service, reaching
from orders_builder import an_order
from requests_of_routes import DOCUMENT

# Of the headers of an answer, those of its content and of where it leads.
KEPT = (
    "content-type", "content-disposition", "content-encoding", "etag", "location", "allow",
    "cache-control", "www-authenticate", "x-price-export-empty-reason",
)  # fmt: skip


def addresses(app, ids):
    """The address of each GET route of the application, in and beside openapi.json."""
    for route in sorted(app.routes, key=lambda route: route.path):
        if "GET" in getattr(route, "methods", ()):
            yield re.sub(
                r"\{(\w+)(:\w+)?\}", lambda name: str(ids.get(name[1], 1)), route.path_format
            )


@pytest.mark.day
async def test_head_is_get_without_its_body_at_every_address(a_seller, service):
    """Nothing else asks all routes of the application by HEAD."""
    seller, ids = await filled_shop(a_seller)
    await operates(seller)
    browser = await signed_in(seller)
    read = 0
    for address in addresses(service.app, ids):
        who = seller.http if address.startswith("/api/v1/") else browser.http
        head = await who.head(address)
        assert head.content == b"", address
        if "event-stream" in head.headers.get("content-type", ""):
            continue
        got = await who.get(address)
        assert head.status_code == got.status_code, address
        for name in KEPT:
            assert head.headers.get(name) == got.headers.get(name), address
        lengths = [int(one.headers.get("content-length", -1)) for one in (head, got)]
        # What is packed has a name of a random length, and times and tokens differ.
        assert abs(lengths[0] - lengths[1]) <= 1.1 * LONGEST_NAME, address
        read += got.status_code < 400
    assert read > 200


# Who asks is noted whatever is asked: by the limits of rate, and as a use of the session.
OF_THE_CALLER = {"agent_seen", "member_session", "rate_limit"}
# One statement a table would take most of the test.
EVERY_TABLE = " UNION ALL ".join(
    f"SELECT '{table.name}' AS name, count(*) AS rows,"
    f" sum(hashtextextended(t::text, 0)) AS digest FROM {table.name} t"
    for table in metadata.sorted_tables
    if table.name not in OF_THE_CALLER
)


@pytest.mark.day
@pytest.mark.parametrize("small", [5000, pytest.param(0, marks=pytest.mark.night)])
async def test_head_changes_no_row_of_any_table(a_seller, service, alive, owner_url, small):
    """Nothing else looks at all tables after a HEAD of each route: as a GET, some take a lock, mark
    a file as served, or make what a page needs. Where no shop is small, processes of their own read.
    """
    filled, ids = await filled_shop(a_seller)
    await operates(filled)
    await service.run_jobs()
    url = libpq_url(owner_url, role=None)
    written = {}
    async with (
        reaching(service, alive, heavy_cards=small) as near,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as db,
        near.client() as stranger,
    ):
        seller = of_service(filled, near)
        browser = await signed_in(seller)

        async def stands():
            return set(await (await db.execute(EVERY_TABLE)).fetchall())

        before = await stands()
        for address in addresses(near.app, ids):
            who = seller.http if address.startswith("/api/v1/") else browser.http
            for one in (who, stranger):
                await one.head(address)
                after = await stands()
                if after != before:
                    written[address] = {name for name, *_ in after ^ before}
                before = after
    assert written == {}


async def test_head_is_a_method_where_get_is_one(a_seller, service):
    seller = await a_seller()
    refused = await seller.http.head("/api/v1/heartbeat")
    assert (refused.status_code, refused.headers["allow"]) == (405, "OPTIONS, POST")
    assert (await seller.http.put("/api/cards")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await seller.http.head("/nowhere")).status_code == 404
    async with service.client() as stranger:
        for address in ("/healthz", "/readyz", "/sign-in", "/openapi/openapi.json"):
            assert (await stranger.head(address)).status_code == 200, address
        assert (await stranger.head("/api/cards")).status_code == 401
        ranged = await stranger.head("/healthz", headers={"Range": "bytes=0-1"})
        assert ranged.status_code == 200


def queries():
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            for one in operation.get("parameters", ()):
                if one["in"] == "query":
                    yield method.upper(), path, one


def takes_several(parameter):
    schema = parameter["schema"]
    return any(form.get("type") == "array" for form in (schema, *schema.get("oneOf", ())))


SEVERAL = [(method, path, one["name"]) for method, path, one in queries() if takes_several(one)]


def test_a_parameter_that_takes_several_values_is_described_as_an_array():
    words = re.compile(r"comma|repeat|one or more|several", re.IGNORECASE)
    told = [(method, path, one["name"]) for method, path, one in queries()
            if words.search(one.get("description", ""))]  # fmt: skip
    assert set(told) - set(SEVERAL) == set()
    assert len(SEVERAL) > 12


@pytest.fixture
async def values(a_seller):
    """A shop, and two values of each parameter that takes several."""
    rows = [a_row(number, name=f"Card {number}") for number in (1, 2, 3)]
    seller = await a_shop(a_seller, *rows, planner_opt_in=True)
    ids = await card_ids(seller)
    assert (await seller.post("/api/v1/sync/request")).json() == {"status": "requested"}
    for status in ("Completed", "Refunded", "Processing"):
        await an_order(seller, status=status)
    of_cards = [str(ids[1]), str(ids[2])]
    return seller, {
        "selected_ids": of_cards,
        "card_id": of_cards,
        "card_ids": of_cards,
        "marketplace_id": ["1", "2"],
        "marketplace_ids": ["1", "2"],
        "status": ["Completed", "Processing"],
        # The plan's refusal names the first step that is missing.
        "capabilities": ["export_inventory", "upload_inventory"],
    }


@pytest.mark.first(100)
@pytest.mark.parametrize(("method", "path", "name"), SEVERAL)
async def test_a_parameter_of_several_values_is_read_in_both_forms(values, method, path, name):
    seller, known = values
    ids = await card_ids(seller)
    told = {}
    for form in ("x", "x[]", "x%5B%5D"):
        for count in (1, 2):
            query = "&".join(f"{form.replace('x', name)}={one}" for one in known[name][:count])
            # A list of its own, as its cards may go.
            here = f"of {len(told)}"
            made = await a_list(seller, here, *ids.values()) if "lists" in path else 0
            here = path.format(card_id=ids[3], list_id=made)
            here += "?sort=name&direction=desc&" if "behind" in path else "?"
            if method == "DELETE" and name == "selected_ids":
                here += "search=card&"
            answer = await seller.http.request(method, here + query)
            assert answer.status_code == 200, answer.text
            body = answer.json() if "json" in answer.headers["content-type"] else answer.text
            told[form, count] = body["removed"] if method == "DELETE" else body
    assert told["x", 1] == told["x[]", 1] == told["x%5B%5D", 1]
    assert told["x", 2] == told["x[]", 2] == told["x%5B%5D", 2]
    assert told["x", 1] != told["x", 2]


async def test_one_selected_id_in_brackets_selects_one_card_and_not_the_whole_inventory(values):
    seller, known = values
    [one, _] = known["selected_ids"]
    for query in (f"selected_ids[]={one}", f"selected_ids={one}", f"selected_ids%5b%5d={one}"):
        found = (await seller.get(f"/api/cards?{query}")).json()
        assert [card["id"] for card in found["cards"]] == [int(one)]
    browser = await signed_in(seller)
    assert "1 card" in (await browser.get(f"/print?selected_ids[]={one}")).text
    assert (
        "2 cards"
        in (
            await browser.get(
                "/print?" + "&".join(f"selected_ids[]={id}" for id in known["card_id"])
            )
        ).text
    )
