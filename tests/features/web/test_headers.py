"""The headers that every answer carries for browsers, the origins that are believed, and the rest
of a body that is too large.
"""

import asyncio

import pytest

from builders import a_csv, a_row
from cardsync import limits
from cardsync.dashboard.assets import asset_url
from cardsync.web import late_bodies

NOSNIFF = ("X-Content-Type-Options", "nosniff")


async def test_no_browser_guesses_what_an_answer_is(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    answers = [
        await seller.post("/api/v1/heartbeat"),
        await seller.get("/api/v1/sync/pending"),
        await seller.export(),
        await seller.get("/api/cards"),
        await seller.get("/healthz"),
        await seller.get("/openapi/openapi.json"),
        await seller.get("/sign-in"),
        await seller.get(asset_url("mark.svg")),
        await seller.get("/nothing"),
        await seller.get("/nothing", headers={"Accept": "text/html"}),
        await seller.http.delete("/api/v1/status"),
        await seller.post("/api/v1/sync", content=b"no csv"),
        await seller.http.get("/api/v1/status", headers={"Authorization": "Bearer nobody"}),
    ]
    for answer in answers:
        assert answer.headers.get_list(NOSNIFF[0]) == [NOSNIFF[1]], (answer.url, answer.status_code)


async def test_an_error_page_is_locked_down_as_a_strangers_page_is(service):
    async with service.client(Accept="text/html") as http:
        page, error, style = (
            await http.get("/invitations/nobodys"),
            await http.get("/nothing"),
            await http.get(asset_url("mark.svg")),
        )
    assert error.status_code == 404
    for name in (
        "Content-Security-Policy",
        "X-Frame-Options",
        "Referrer-Policy",
        "Cache-Control",
        *NOSNIFF[:1],
    ):
        assert error.headers[name] == page.headers[name]
    # No style of its own, which the policy would refuse; the sheet that it names is there.
    assert "<style" not in error.text
    assert "style=" not in error.text
    assert f'href="{asset_url("app.css")}"' in error.text
    assert style.status_code == 200
    assert "Page not found" in error.text
    assert error.headers["X-Request-Id"] in error.text


@pytest.mark.parametrize("path", ["/api/session", "/sign-in"])
@pytest.mark.parametrize(
    ("host", "believed"),
    [
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("[::1", False),
        ("localhost:8000", True),
        ("[::1]:8000", True),
    ],
)
async def test_a_name_that_anybody_may_point_at_us_is_not_ours(a_seller, path, host, believed):
    """A page of evil.example, whose address was changed to ours after the browser had loaded it."""
    seller = await a_seller()
    told = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    credentials = {"email": seller.email, "password": seller.password}
    async with seller.service.client() as http:
        answer = await http.post(
            path, headers=told, **{"json" if "api" in path else "data": credentials}
        )
    assert answer.status_code == ((200 if "api" in path else 303) if believed else 403)


class Coming:
    """A body that comes piece by piece, for as long as somebody reads."""

    def __init__(self, size, piece=1_000_000):
        self.left, self.piece, self.read = size, piece, 0

    async def __aiter__(self):
        while self.left > 0:
            size = min(self.piece, self.left)
            self.left -= size
            self.read += size
            yield bytes(size)


@pytest.mark.parametrize("path", ["/api/v1/sync", "/api/v1/orders", "/api/v1/heartbeat"])
@pytest.mark.parametrize("declared", [True, False], ids=["content-length", "chunked"])
async def test_a_body_that_is_refused_is_read_to_its_end_before_the_answer(
    a_seller, path, declared
):
    seller = await a_seller()
    body = Coming(3 * limits.BODY_WIRE_BYTES)
    headers = {"Content-Length": str(body.left)} if declared else {}
    answer = await seller.post(path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
    assert body.left == 0


async def test_no_more_is_read_than_the_bound(a_seller, monkeypatch):
    monkeypatch.setattr(late_bodies, "REST_BYTES", 2_000_000)
    seller = await a_seller()
    body = Coming(10 * limits.BODY_WIRE_BYTES)
    answer = await seller.post(
        "/api/v1/sync", content=body, headers={"Content-Length": str(body.left)}
    )
    assert answer.status_code == 413
    assert body.read <= 4_000_000


async def test_who_sends_no_more_is_not_waited_for_long(a_seller, monkeypatch):
    monkeypatch.setattr(late_bodies, "REST_SECONDS", 0.1)
    seller = await a_seller()

    async def stalled():
        yield bytes(limits.BODY_WIRE_BYTES + 1)
        await asyncio.sleep(30)

    async with asyncio.timeout(10):
        answer = await seller.post("/api/v1/sync", content=stalled())
    assert answer.status_code == 413


async def test_who_waits_to_be_asked_for_the_body_is_not_asked(a_seller):
    seller = await a_seller()
    body = Coming(3 * limits.BODY_WIRE_BYTES)
    headers = {"Content-Length": str(body.left), "Expect": "100-continue"}
    answer = await seller.post("/api/v1/sync", content=body, headers=headers)
    assert answer.status_code == 413
    assert body.read == 0
