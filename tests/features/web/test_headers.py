"""The headers that every answer carries for browsers, the origins that are believed, and the rest
of a body that is too large.
"""

import asyncio

import httpx
import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.asgi import create_app
from cardsync.dashboard.assets import asset_url
from cardsync.platform import limits
from cardsync.web import browser_headers, late_bodies
from dashboard_builder import filled_shop
from pages import PAGES
from requests_of_routes import ROUTES, answer_of

# What each answer tells browsers, unless it says something stricter or of its own.
ALWAYS = (
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Permissions-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
)
REFERRERS = {"no-referrer", "same-origin"}
# What browsers keep although a member's cookie opened it: what has no end at its address, and
# pictures, for this browser alone.
KEPT = ("public, max-age=31536000, immutable", "private, max-age=", "no-cache", "private, no-store")


def wrong_in(answer, *, signed_in):
    """What the headers of an answer lack."""
    told = answer.headers
    policy = told.get("Content-Security-Policy", "")
    kept = told.get("Cache-Control", "")
    return [
        *(name for name in ALWAYS if told.get_list(name) != [ALL[name.lower()]]),
        *(["policy"] if "default-src 'none'" not in policy else []),
        *(["frames"] if "frame-ancestors 'none'" not in policy + FRAMES.get(policy, "") else []),
        *(["unsafe"] if "unsafe" in policy or "*" in policy else []),
        *(["referrer"] if told.get("Referrer-Policy") not in REFERRERS else []),
        *(["kept"] if signed_in and kept != "no-store" and not kept.startswith(KEPT) else []),
    ]


ALL = browser_headers.ALWAYS
# A picture stands in a sandbox, and a worker in no frame.
FRAMES = {
    "default-src 'none'; sandbox": "frame-ancestors 'none'",
    "default-src 'none'; connect-src 'self'": "frame-ancestors 'none'",
}


@pytest.mark.day
async def test_every_route_tells_browsers_what_they_must_not_do(a_seller):
    """Each of openapi.json, by a signed-in owner and by a key."""
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    owner = await signed_in(seller)
    wrong = {}
    for route in sorted(ROUTES - {"DELETE /api/session"}):
        for send, with_cookie in ((owner.send, True), (seller.http.request, False)):
            answer = await answer_of(send, route)
            if found := wrong_in(answer, signed_in=with_cookie):
                wrong[route] = found
    assert wrong == {}


@pytest.mark.day
async def test_every_page_tells_browsers_what_they_must_not_do(a_seller):
    seller, ids = await filled_shop(a_seller)
    browser = await signed_in(seller)
    # A stream of events has no end, and is asked for by its own tests.
    asked = [page for page in PAGES if page.route != "/pulls/{session_id:int}/changes"]
    answers = {page.route: await browser.get(page.address(ids)) for page in asked}
    for path in ("/nothing", "/sign-in", asset_url("mark.svg"), "/p/worker.js", "/oauth/authorize"):
        answers[path] = await browser.get(path)
    answers["a form"] = await browser.form("/lists", name="")
    wrong = {
        path: found
        for path, answer in answers.items()
        if (found := wrong_in(answer, signed_in=True))
    }
    assert wrong == {}


async def test_strangers_and_refusals_are_told_too(a_seller, service):
    seller = await a_seller()
    async with service.client() as http:
        answers = [
            await http.get("/healthz"),
            await http.get("/openapi/openapi.json"),
            await http.get("/sign-in"),
            await http.get("/nothing", headers={"Accept": "text/html"}),
            await http.get("/.well-known/oauth-authorization-server"),
            await http.get("/api/v1/status", headers={"Authorization": "Bearer nobody"}),
            await http.post("/mcp", content=b"{"),
            await seller.http.delete("/api/v1/status"),
            await seller.post("/api/v1/sync", content=b"no csv"),
            await seller.export(),
        ]
    assert [wrong_in(answer, signed_in=False) for answer in answers] == [[]] * len(answers)


@pytest.mark.parametrize(("origin", "told"), [("https://shop.example", True), ("http://b", False)])
async def test_a_browser_comes_by_https_alone_where_we_are_reached_by_it(settings, origin, told):
    app = create_app(settings.model_copy(update={"public_url": origin}))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=origin) as http:
        answer = await http.get("/healthz")
    assert ("Strict-Transport-Security" in answer.headers) is told


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
        "X-Content-Type-Options",
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
