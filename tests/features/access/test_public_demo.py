"""A public demo: everybody signs in with a click, and changes what each night undoes, nothing else."""

import re
from dataclasses import replace

import pytest

from browsers import signed_in
from builders import SellerBuilder
from cardsync.access import tokens
from cardsync.asgi import create_app
from cardsync.web.public_demo import is_open
from cardsync.web.public_fetch import FetchRequest, NotFetched, Outward, fetch, post

CLOSED = {
    "/api/account", "/api/account/deletion", "/api/assistants/1", "/api/contributions",
    "/api/keys", "/api/members/invitations", "/api/members/me", "/api/notices/choices",
    "/api/operator/backups", "/api/operator/catalogs/files", "/api/passkeys", "/api/v1/heartbeat",
    "/api/v1/sync/upload-request", "/api/v1/tasks", "/api/webhooks", "/account/password",
    "/invitations/x", "/network", "/oauth/register", "/oauth/token", "/objects/x",
    "/operator/catalogs", "/set-up/restore", "/settings/data/delete", "/settings/people",
    "/settings/webhooks", "/sync/request",
}  # fmt: skip


@pytest.fixture
async def shop(service, alive):
    """A seller of a service that is a public demo."""
    seller = await SellerBuilder(service)()
    public = f"{seller.email}:{seller.password}"
    settings = service.settings.model_copy(update={"public_demo": public})
    app = create_app(settings)
    async with alive(app):
        seller.service = replace(service, app=app, settings=settings)
        seller.http = seller.service.client(Authorization=f"Bearer {seller.api_key}")
        yield seller


async def test_a_visitor_signs_in_by_a_click_and_tries_prices(shop):
    async with shop.service.client() as http:
        page = (await http.get("/sign-in")).text
        form = dict(re.findall(r'name="(email|password)" value="([^"]+)"', page))
        entered = await http.post("/sign-in", data=form)
        assert (entered.status_code, entered.headers["Location"]) == (303, "/today")
        today = await http.get("/today")
        assert "Public demo: undone each night" in today.text
    visitor = await signed_in(shop)
    made = await visitor.post("/api/lists", json={"name": "Trade binder"})
    assert made.status_code == 201, made.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/api/members/me", {"current_password": "x", "new_password": "long enough 1"}),
        ("POST", "/api/keys", {"name": "mine"}),
        ("POST", "/api/webhooks", {"url": "https://example.com/hook", "kinds": []}),
        ("POST", "/api/members/invitations", {"email": "a@example.com", "role": "owner"}),
        ("POST", "/api/account/deletion", {}),
        ("POST", "/settings/people", {}),
        ("POST", "/settings/data/delete", {}),
    ],
)
async def test_a_visitor_locks_nobody_out_and_sends_nothing(shop, method, path, body):
    visitor = await signed_in(shop)
    answer = await visitor.send(method, path, json=body, extensions={"raw": True})
    assert answer.status_code == 403
    assert "Visitors of this public demo can" in answer.text


async def test_a_key_writes_no_more_than_a_visitor(shop):
    answer = await shop.post("/api/v1/heartbeat", json={}, extensions={"raw": True})
    assert (answer.status_code, answer.json()["code"]) == (403, "public_demo")


async def test_every_route_that_locks_out_or_sends_is_closed(service):
    assert not [path for path in CLOSED if is_open(path)]
    writes = {
        (method, route.path)
        for route in service.app.routes
        for method in getattr(route, "methods", ())
        if method not in tokens.SAFE_METHODS
    }
    reached = {path for _, path in writes if is_open(path)}
    # Words that name what no visitor may write, wherever a new route has them.
    risky = re.compile("keys|member|password|webhook|mail|backup|restore|operator|picture")
    assert not [path for path in reached if risky.search(path)]
    assert len(reached) > 150


async def test_nothing_leaves_where_requests_are_off(monkeypatch):
    monkeypatch.setattr(Outward, "allowed", False)

    async def never(host, port):
        raise AssertionError(host)

    with pytest.raises(NotFetched, match="OUTWARD_REQUESTS"):
        await post("https://example.com/hook", b"", {}, 1, look_up=never)
    asked = FetchRequest("application/json", str.isascii, "it is no JSON", 1000, 1)
    with pytest.raises(NotFetched, match="OUTWARD_REQUESTS"):
        await fetch("https://example.com/x.json", asked, look_up=never)
