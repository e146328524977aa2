"""The simulated marketplace over HTTP: what a seller does there, and each fault."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import httpx
import pytest

from cardsync_agent.orders import KINDS, kind_of
from marketplace.goods import FIRST_ID
from marketplace.server import Server, started
from marketplace.shop import CODE, EMAIL, PASSWORD

TODAY = date(2026, 11, 20)
HEADER = "TCGplayer Id,Add to Quantity,TCG Marketplace Price\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    made = started(rows=120, orders=80, today=TODAY)
    yield made
    made.stop()


@contextmanager
def signed_in(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, follow_redirects=True) as client:
        client.post("/sign-in", data={"email": EMAIL, "password": PASSWORD})
        assert client.post("/second-factor", data={"code": CODE}).status_code == 200
        yield client


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with signed_in(server) as made:
        yield made


def state(client: httpx.Client) -> dict[str, object]:
    return client.get("/_state").json()


def fault(client: httpx.Client, **told: object) -> None:
    answer = client.post("/_control", json=told)
    assert answer.status_code == 200, answer.text


def upload(client: httpx.Client, rows: str, name: str = "prices.csv") -> httpx.Response:
    return client.post("/pricing/import", files={"prices_file": (name, HEADER + rows)})


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_it_starts_as_a_program_and_keeps_its_state(tmp_path):
    kept = tmp_path / "state.json"
    command = [sys.executable, "-m", "tests.marketplace", "--port", "0", "--rows", "50",
               "--state", str(kept)]  # fmt: skip
    for published in (0, 1):
        with subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            assert process.stdout.readline() == f"sign in with {EMAIL} and {PASSWORD}\n"
            with httpx.Client(base_url=address) as client:
                seen = state(client)
                assert len(seen["imports"]) == published
                if not published:
                    client.post("/sign-in", data={"email": EMAIL, "password": PASSWORD})
                    client.post("/second-factor", data={"code": CODE})
                    upload(client, f"{FIRST_ID},0,7.77\r\n")
                    client.post("/pricing/imports/1/publish")
                else:
                    assert seen["prices"][str(FIRST_ID)] == "7.77"
            process.terminate()
            assert process.wait(10) == 0


@pytest.mark.parametrize("design", [1, 2, 3])
def test_a_seller_signs_in_and_comes_back_to_the_page(server, design):
    server.control(design=design, captcha=True)
    with httpx.Client(base_url=server.address, follow_redirects=True) as client:
        page = client.get("/orders?from=2026-01-01")
        assert page.url.path == "/sign-in"
        assert client.get("/pricing/export.csv").url.path == "/sign-in"
        sent = {"email": EMAIL, "password": "no", "next": page.url.params["next"]}
        assert client.post("/sign-in", data=sent).status_code == 422
        page = client.post("/sign-in", data=sent | {"password": PASSWORD})
        assert page.url.path == "/second-factor"
        [cookie] = client.cookies.jar
        assert cookie.expires is None
        sent = {"code": CODE, "next": page.url.params["next"]}
        assert client.post("/second-factor", data=sent | {"code": "1"}).status_code == 422
        page = client.post("/second-factor", data=sent)
        assert page.url.path == "/challenge"
        page = client.post("/challenge", data={"person": "1", "next": page.url.params["next"]})
        assert (page.url.path, page.url.params["from"]) == ("/orders", "2026-01-01")
        client.post("/sign-out")
        assert client.get("/").url.path == "/sign-in"


@pytest.mark.parametrize("to", ["//evil.example/", "https://evil.example/", "/\\evil.example"])
def test_signing_in_leads_to_no_other_site(server, to):
    with httpx.Client(base_url=server.address) as client:
        data = {"email": EMAIL, "password": PASSWORD, "next": to}
        assert client.post("/sign-in", data=data).headers["Location"] == "/"


def test_prices_are_exported_staged_and_published(client):
    exported = rows_of(client.get("/pricing/export.csv"))
    assert len(exported) == 120
    assert 0 < len(rows_of(client.get("/pricing/export.csv?product_line=Magic&in_stock=1"))) < 24
    first, second = exported[0], exported[1]
    text = f"{first['TCGplayer Id']},2,3.5000\r\n{second['TCGplayer Id']},0,0\r\n99,0,1.00\r\n"
    page = upload(client, text)
    assert page.url.path == "/pricing/imports/1"
    assert re.search(r'id="rows-accepted"[^>]*>1<', page.text)
    assert [row["Reason"] for row in rows_of(client.get("/pricing/imports/1/report.csv"))] == [
        "the price is below 0.01", "unknown TCGplayer Id",
    ]  # fmt: skip
    assert state(client)["prices"][first["TCGplayer Id"]] != "3.50"
    for _ in range(2):
        assert "Published" in client.post("/pricing/imports/1/publish").text
    seen = state(client)
    assert seen["prices"][first["TCGplayer Id"]] == "3.50"
    assert seen["quantities"][first["TCGplayer Id"]] == int(first["Total Quantity"]) + 2
    [read] = rows_of(client.get(f"/pricing/lookup.csv?ids={first['TCGplayer Id']},12"))
    assert read["TCG Marketplace Price"] == "3.5000"
    assert ">3.50<" in client.get(f"/pricing/cards/{first['TCGplayer Id']}").text


def test_a_staged_import_is_replaced_or_discarded(client):
    upload(client, f"{FIRST_ID},0,1.00\r\n")
    upload(client, f"{FIRST_ID},0,2.00\r\n")
    assert client.get("/pricing/staged").url.path == "/pricing/imports/2"
    assert "Discarded" in client.post("/pricing/imports/2/discard").text
    client.post("/pricing/imports/2/publish")
    client.post("/pricing/imports/1/publish")
    assert client.get("/pricing/staged").url.path == "/pricing/import"
    assert [one["status"] for one in state(client)["imports"]] == ["replaced", "discarded"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("a,b\r\n1,2\r\n", "no column TCGplayer Id"),
        (HEADER, "no rows"),
        (HEADER + "1,0,1\r\n1,0,2\r\n", "twice"),
        (HEADER + "1,0,1\r\n2,0,1\r\n3,0,1\r\n", "more than 2 rows"),
        (b"\xff\xfe", "no CSV|not a CSV"),
    ],
)
def test_a_file_that_is_no_import_is_refused_whole(client, content, error):
    fault(client, most_rows=2)
    page = client.post("/pricing/import", files={"prices_file": ("p.csv", content)})
    assert page.status_code == 422
    assert re.search(error, page.text)
    assert client.get("/pricing/staged").url.path == "/pricing/import"


def test_every_file_is_one_that_the_agent_knows(client):
    found = []
    for path in ("orders/export", "orders/shipping", "orders/pull-sheet", "refunds/export",
                 "feedback/export", "payments/report"):  # fmt: skip
        answer = client.get(f"/{path}.csv?from=2020-01-01&month=2026-10")
        assert len(rows_of(answer)) >= 1, path
        found.append(kind_of(answer.text.splitlines()[0].split(",")))
    assert set(found) == set(KINDS)
    assert [one["whole"] for one in state(client)["downloads"]] == [True] * 6


def test_orders_are_those_of_the_days_that_were_chosen(client):
    def days(query: str) -> list[str]:
        return [row["Order Date"] for row in rows_of(client.get(f"/orders/export.csv{query}"))]

    last_90, all_days = days(""), days("?from=2020-01-01&to=2026-11-20")
    assert 0 < len(last_90) < len(all_days) == 80
    assert len(days("?from=2026-11-01&to=2026-11-10")) < len(last_90)
    assert 'rel="next"' in client.get("/orders?from=2020-01-01").text
    assert "Page 4 of 4" in client.get("/orders?from=2020-01-01&page=4").text


def test_a_card_is_added(client):
    card = rows_of(client.get("/pricing/export.csv"))[0]
    sent = {"card_id": card["TCGplayer Id"], "condition": card["Condition"], "quantity": "3",
            "price": "4.20"}  # fmt: skip
    for wrong in ({"card_id": "1"}, {"condition": "Odd"}, {"quantity": "0"}, {"price": "0"}):
        assert client.post("/inventory/add", data=sent | wrong).status_code == 422
    assert client.post("/inventory/add", data=sent).status_code == 200
    [listed] = state(client)["listed"]
    assert listed == {"id": FIRST_ID, "quantity": 3, "price": "4.20"}


def test_later_designs_take_their_own_names(server, client):
    server.control(design=2)
    page = client.get("/orders?start=2026-11-01&end=2026-11-10")
    assert 'value="2026-11-01"' in page.text
    listed = len(rows_of(client.get("/orders/download-list?start=2026-11-01&end=2026-11-10")))
    assert listed == len(rows_of(client.get("/orders/export.csv?from=2026-11-01&to=2026-11-10")))
    files = {"csvUpload": ("p.csv", HEADER + f"{FIRST_ID},0,1.00\r\n")}
    assert client.post("/pricing/import", files=files).url.path == "/pricing/imports/1"


def test_no_page_has_marks(client):
    for path in ("/", "/pricing", "/pricing/import", "/orders", "/account", "/nothing"):
        assert "mark=" not in client.get(path).text


def test_faults_have_a_path_a_count_and_a_beginning(client):
    fault(client, fault="error", path="/orders*", count=2, after=1, status=503)
    found = [client.get(path).status_code for path in ("/orders", "/account", "/orders", "/orders",
                                                       "/orders")]  # fmt: skip
    assert found == [200, 200, 503, 503, 200]
    fault(client, fault="error", count=None)
    assert {client.get("/account").status_code for _ in range(3)} == {500}
    fault(client, clear=True)
    assert client.get("/account").status_code == 200


def test_faults_of_answers(client):
    fault(client, fault="too_many", retry_after=7)
    answer = client.get("/orders")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    fault(client, fault="latency", seconds=0.2)
    assert client.get("/orders").elapsed.total_seconds() >= 0.2
    fault(client, fault="other_origin", to="http://other.example/")
    answer = client.get("/orders", follow_redirects=False)
    assert answer.headers["Location"] == "http://other.example/"
    fault(client, fault="wrong_type")
    answer = client.get("/pricing/export.csv")
    assert "text/html" in answer.headers["Content-Type"]
    assert "attachment" in answer.headers["Content-Disposition"]
    fault(client, fault="wrong_type", inline=True)
    assert "Content-Disposition" not in client.get("/pricing/export.csv").headers


def test_faults_of_the_network(client):
    fault(client, fault="half_download")
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/pricing/export.csv")
    assert [one["whole"] for one in state(client)["downloads"]] == [False]
    fault(client, fault="half_upload", path="/pricing/import")
    with pytest.raises(httpx.TransportError):
        upload(client, f"{FIRST_ID},0,1.00\r\n" + "1" * 200_000)
    assert state(client)["imports"] == []
    fault(client, fault="hang_up")
    with pytest.raises(httpx.TransportError):
        client.get("/orders")
    assert client.get("/orders").status_code == 200


def test_faults_of_the_session(client):
    fault(client, fault="expired_session", after=1)
    assert client.get("/orders").url.path == "/orders"
    assert client.get("/orders").url.path == "/sign-in"


def test_faults_of_an_import(client):
    fault(client, fault="reject_rows", rows=1, reason="too cheap")
    ids = [int(row["TCGplayer Id"]) for row in rows_of(client.get("/pricing/export.csv"))[:3]]
    upload(client, "".join(f"{id_},0,1.00\r\n" for id_ in ids))
    assert "too cheap" in client.get("/pricing/imports/1/report.csv").text
    fault(client, fault="wrong_price", id=ids[1], by=50)
    client.post("/pricing/imports/1/publish")
    prices = state(client)["prices"]
    assert [prices[str(id_)] for id_ in ids[1:]] == ["1.50", "1.00"]


def test_the_import_page_may_ask_for_the_password_again(client):
    fault(client, fault="password_again", count=None)
    assert 'type="password"' in client.get("/pricing/import").text
    assert client.post("/confirm-password", data={"password": "no"}).status_code == 422
    page = client.post("/confirm-password", data={"password": PASSWORD})
    assert 'type="file"' in page.text


def test_an_element_may_be_taken_off(client):
    fault(client, fault="remove", element="export_pricing", path="/pricing", count=1)
    assert "Export pricing" not in client.get("/pricing").text
    assert "Export pricing" in client.get("/pricing").text


@pytest.mark.parametrize(
    "told", [b"[]", b"{", b'{"fault":"odd"}', b'{"fault":"error","odd":1}', b'{"odd":1}']
)
def test_what_cannot_be_controlled_is_refused(client, told):
    answer = client.post("/_control", content=told)
    assert answer.status_code == 400
    assert json.loads(answer.content)["error"]


def test_imports_at_the_same_time_are_all_counted(server):
    def work(number: int) -> None:
        with signed_in(server) as client:
            for turn in range(5):
                upload(client, f"{FIRST_ID + 7 * number},1,{turn + 1}.00\r\n")
                client.post(f"/pricing/imports/{number}/discard")

    with signed_in(server) as client:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        imports = state(client)["imports"]
    assert [one["id"] for one in imports] == list(range(1, 21))
    assert sum(one["status"] == "staged" for one in imports) <= 1
