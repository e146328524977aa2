"""Keys and their refusals: a key is checked before anything else of a request."""

import re

import pytest

from builders import a_csv, a_row
from cardsync.access import keys

NO_CREDENTIALS = 'Bearer realm="cardsync"'
BAD_CREDENTIALS = 'Bearer realm="cardsync", error="invalid_token"'

# Every route behind a key.
ROUTES = [
    ("POST", "/api/v1/heartbeat"),
    ("GET", "/api/v1/sync/pending"),
    ("GET", "/api/v1/status"),
    ("POST", "/api/v1/sync/request"),
    ("POST", "/api/v1/sync/skip_wait"),
    ("POST", "/api/v1/repricing_events"),
    ("POST", "/api/v1/repricing_events/failure"),
    ("POST", "/api/v1/sync/log"),
    ("POST", "/api/v1/sync/debug"),
    ("POST", "/api/v1/sync/cancel"),
    ("DELETE", "/api/v1/sync/approve_upload"),
    ("POST", "/api/v1/sync/upload-request"),
    ("POST", "/api/v1/sync"),
    ("GET", "/api/v1/sync/cycles"),
    ("GET", "/api/v1/sync/cycles/1"),
    ("GET", "/api/v1/sync/screenshots/1"),
    ("GET", "/api/v1/uploads"),
    ("GET", "/api/v1/uploads/1"),
    ("GET", "/api/v1/uploads/1/rejected.csv"),
    ("POST", "/api/v1/uploads/1/mend"),
    ("POST", "/api/v1/uploads/1/confirm"),
    ("POST", "/api/v1/uploads/1/discard"),
    ("GET", "/api/v1/export/price-updates"),
    ("GET", "/api/v1/desktop/update"),
    ("POST", "/api/v1/orders"),
    ("POST", "/api/v1/order_refunds"),
    ("POST", "/api/v1/order_items"),
    ("POST", "/api/v1/orders/shipping"),
    ("POST", "/api/v1/order_feedbacks"),
    ("POST", "/api/v1/sales_report"),
    ("GET", "/api/v1/sales_report"),
    ("GET", "/api/v1/sales_report/gaps"),
    ("GET", "/api/members"),
    ("POST", "/api/members/invitations"),
    ("PATCH", "/api/members/1"),
    ("DELETE", "/api/members/1"),
    ("DELETE", "/api/members/1/sessions"),
    ("POST", "/api/members/1/link"),
    ("GET", "/api/keys"),
    ("POST", "/api/keys"),
    ("DELETE", "/api/keys/1"),
    ("GET", "/api/export/everything"),
    ("GET", "/api/passkeys"),
    ("POST", "/api/passkeys"),
    ("POST", "/api/passkeys/options"),
    ("DELETE", "/api/passkeys/1"),
    ("GET", "/api/account/deletion"),
    ("POST", "/api/account/deletion"),
    ("DELETE", "/api/account/deletion"),
    ("GET", "/api/orders"),
    ("GET", "/api/orders/1"),
    ("GET", "/api/customers"),
    ("GET", "/api/today"),
    ("GET", "/api/network"),
    ("GET", "/analytics/clearing_coverage"),
    ("GET", "/api/analytics/clearing_coverage"),
    ("GET", "/api/market_depth/holds"),
    ("GET", "/api/market_depth/badges"),
    ("GET", "/api/recommendations"),
    ("GET", "/api/pricing/reviews"),
    ("POST", "/api/pricing/reviews/accept"),
    ("POST", "/api/pricing/reviews/dismiss"),
    ("GET", "/api/recommendations/outcomes"),
    ("POST", "/api/recommendations/shown"),
    ("POST", "/api/recommendations/1/accept"),
    ("POST", "/api/recommendations/1/dismiss"),
    ("POST", "/api/recommendations/1/snooze"),
    ("GET", "/api/listed_value"),
    ("GET", "/api/movers"),
    ("GET", "/api/cards"),
    ("GET", "/api/cards/complete"),
    ("GET", "/api/cards/export.csv"),
    ("GET", "/api/cards/1"),
    ("GET", "/api/orders/export.csv"),
    ("GET", "/api/customers/export.csv"),
    ("GET", "/api/lists/export.csv"),
    ("GET", "/api/pricing/runs/export.csv"),
    ("GET", "/api/v1/agent/activity/export.csv"),
    ("GET", "/api/cards/1/behind"),
    ("GET", "/api/cards/1/match"),
    ("POST", "/api/cards/1/match"),
    ("GET", "/api/cards/1/orders"),
    ("GET", "/api/saved_searches"),
    ("POST", "/api/saved_searches"),
    ("PATCH", "/api/saved_searches/1"),
    ("DELETE", "/api/saved_searches/1"),
    ("GET", "/api/card_columns"),
    ("PUT", "/api/card_columns"),
    ("PUT", "/api/card_columns/shop"),
    ("POST", "/api/pull_sessions"),
    ("GET", "/api/pull_sessions/1"),
    ("POST", "/api/pull_sessions/1/orders/1/pulled"),
    ("POST", "/api/pull_sessions/1/orders/1/defer"),
    ("POST", "/api/pull_sessions/1/orders/1/unassign"),
    ("POST", "/api/pull_sessions/1/complete"),
    ("POST", "/api/pull_sessions/1/cancel"),
    ("POST", "/api/orders/1/dismiss"),
    ("POST", "/api/orders/1/undismiss"),
    ("POST", "/api/orders/1/mark_shipped"),
    ("POST", "/api/orders/1/unmark_shipped"),
    ("GET", "/api/lists"),
    ("GET", "/api/lists/1"),
    ("POST", "/api/lists"),
    ("DELETE", "/api/lists/1"),
    ("PATCH", "/api/lists/1"),
    ("DELETE", "/api/lists/1/cards"),
    ("POST", "/api/lists/1/cards"),
    ("DELETE", "/api/pricing/pins/1"),
    ("PUT", "/api/pricing/pins/1"),
    ("POST", "/api/pricing/pins/pin_many"),
    ("POST", "/api/pricing/pins/unpin_many"),
    ("POST", "/api/pricing/presets/1"),
    ("POST", "/api/pricing/backtest"),
    ("GET", "/api/operator/sellers"),
    ("GET", "/api/operator/sellers/1"),
    ("PATCH", "/api/operator/sellers/1"),
    ("GET", "/api/operator/installation"),
    ("GET", "/api/print/sheets"),
    ("GET", "/api/print/sheets/1"),
    ("GET", "/api/customers/1"),
    ("PUT", "/api/customers/1/note"),
    ("GET", "/api/returns"),
    ("GET", "/api/returns/customers"),
    ("POST", "/api/returns/1/restocked"),
    ("POST", "/api/pricing/preview/draft"),
    ("POST", "/api/pricing/test"),
    ("GET", "/api/pricing/rule_tests"),
    ("POST", "/api/pricing/rule_tests"),
    ("PATCH", "/api/pricing/rule_tests/1"),
    ("DELETE", "/api/pricing/rule_tests/1"),
    ("POST", "/api/pricing/rule_tests/check"),
    ("GET", "/api/sales/summary"),
    ("GET", "/api/sales/summary.csv"),
    ("GET", "/api/sales/cards"),
    ("GET", "/api/sales/cards.csv"),
    ("POST", "/api/pricing/preview"),
    ("POST", "/api/pricing/reprice"),
    ("GET", "/api/pricing/rollbacks"),
    ("POST", "/api/pricing/rollbacks"),
    ("GET", "/api/pricing/rollbacks/1"),
    ("POST", "/api/pricing/rollbacks/1/cancel"),
    ("GET", "/api/pricing/rules"),
    ("POST", "/api/pricing/rules"),
    ("DELETE", "/api/pricing/rules/1"),
    ("GET", "/api/pricing/rules/1"),
    ("PATCH", "/api/pricing/rules/1"),
    ("POST", "/api/pricing/rules/1/disable"),
    ("POST", "/api/pricing/rules/1/enable"),
    ("POST", "/api/pricing/rules/1/publish"),
    ("GET", "/api/pricing/rules/analysis"),
    ("GET", "/api/pricing/presets"),
    ("GET", "/api/pricing/updates.csv"),
    ("POST", "/api/pricing/rules/reorder"),
    ("GET", "/api/pricing/runs"),
    ("GET", "/api/pricing/runs/1"),
    ("GET", "/api/pricing/receipts/1"),
    ("POST", "/api/pricing/runs/1/confirm"),
    ("POST", "/api/pricing/runs/1/discard"),
    ("GET", "/api/pricing/sales"),
    ("POST", "/api/pricing/sales"),
    ("DELETE", "/api/pricing/sales/1"),
    ("GET", "/api/pricing/sales/1"),
    ("PATCH", "/api/pricing/sales/1"),
    ("GET", "/api/pricing/settings"),
    ("PATCH", "/api/pricing/settings"),
    ("GET", "/api/v1/pricing/explain/1"),
    ("POST", "/api/v1/pricing/explain/1/changed"),
    ("POST", "/api/v1/tasks"),
    ("GET", "/api/v1/agent/activity"),
    ("POST", "/api/v1/agent/activity/1/undo"),
    ("POST", "/api/v1/tasks/claim"),
    ("PATCH", "/api/v1/tasks/1"),
    ("GET", "/api/v1/tasks"),
    ("POST", "/api/v1/workflow/heal"),
    ("POST", "/api/v1/workflow/corrections"),
    ("POST", "/api/v1/workflow/corrections/1/failure"),
    ("POST", "/api/v1/agent/plans"),
    ("GET", "/api/v1/agent/plans"),
    ("GET", "/api/v1/agent/plans/1"),
    ("POST", "/api/discovery/availability"),
    ("POST", "/api/discovery/basket"),
    ("GET", "/api/quick_add"),
    ("GET", "/api/quick_add/products"),
    ("POST", "/api/quick_add"),
    ("PATCH", "/api/quick_add/1"),
    ("DELETE", "/api/quick_add/1"),
    ("POST", "/api/quick_add/publish"),
    ("GET", "/api/account"),
]
# Routes for members alone refuse any good key: see tests/features/access/test_sessions.py.
BY_SESSION = [
    ("GET", "/api/counts"),
    ("POST", "/api/counts"),
    ("GET", "/api/counts/suggested"),
    ("GET", "/api/counts/1"),
    ("POST", "/api/counts/1/seen"),
    ("POST", "/api/counts/1/settle"),
    ("POST", "/api/counts/1/cancel"),
    ("PATCH", "/api/account"),
    ("GET", "/api/session"),
    ("DELETE", "/api/session"),
    ("POST", "/api/pull_links"),
    ("GET", "/api/pull_links"),
    ("DELETE", "/api/pull_links/1"),
    ("GET", "/api/shelves"),
    ("GET", "/api/shelves/1"),
    ("POST", "/api/contributions"),
    ("POST", "/api/contributions/1/publish"),
    ("POST", "/api/shelves/put"),
    ("POST", "/api/shelves/put_many"),
    ("POST", "/api/shelves/move"),
    ("POST", "/api/shelves/remove"),
    ("GET", "/api/quick_add/pending"),
    ("POST", "/api/quick_add/1/settle"),
    ("POST", "/api/v1/agent/plans/1/confirm"),
    ("POST", "/api/v1/agent/plans/1/decline"),
    ("GET", "/api/v1/agent/plans/permissions"),
    ("PATCH", "/api/v1/agent/plans/permissions"),
]
STRANGERS = {
    ("POST", "/api/session"),
    ("POST", "/api/session/passkey"),
    ("POST", "/api/session/passkey/options"),
    ("POST", "/api/invitations/1"),
}


def test_the_table_names_every_route_behind_a_key(service):
    known = {
        (method, re.sub(r"{\w+}", "1", path))
        for path, methods in service.app.openapi_schema.to_schema()["paths"].items()
        for method in map(str.upper, methods)
        if path.startswith(("/api/", "/analytics/"))
    }
    assert {*ROUTES, *BY_SESSION} == known - STRANGERS


@pytest.mark.parametrize(("method", "path"), ROUTES + BY_SESSION)
async def test_without_credentials_a_route_challenges_without_an_error(service, method, path):
    async with service.client() as http:
        answer = await http.request(method, path)
    assert answer.status_code == 401
    assert answer.json() == {"error": "Missing or invalid API key.", "code": "unauthorized"}
    assert answer.headers["WWW-Authenticate"] == NO_CREDENTIALS


def wrong_check(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic dXNlcjpwYXNz",
        "csk_without_a_scheme",
        f"Bearer {keys.new_key()}",
        f"Bearer {wrong_check(keys.new_key())}",
        "Bearer " + "ü" * 42,
        "Bearer " + "x" * 5000,
    ],
    ids=[
        "scheme-only",
        "blank",
        "nonsense",
        "basic",
        "no-scheme",
        "unknown",
        "mistyped",
        "not-ascii",
        "long",
    ],
)
async def test_bad_credentials_are_named_as_the_error(service, authorization):
    async with service.client() as http:
        answer = await http.get(
            "/api/v1/status", headers={"Authorization": authorization.encode("latin-1")}
        )
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == BAD_CREDENTIALS


async def test_a_good_key_with_one_wrong_character_is_refused(a_seller):
    seller = await a_seller()
    answer = await seller.get(
        "/api/v1/status", headers={"Authorization": f"Bearer {wrong_check(seller.api_key)}"}
    )
    assert answer.status_code == 401


async def test_a_revoked_key_is_refused_at_once(a_seller, service):
    seller = await a_seller()
    assert (await seller.get("/api/v1/status")).status_code == 200
    async with service.database.shared() as session:
        [(key_id, *_)] = await keys.listed(session, seller.id)
        await keys.revoke(session, key_id)
    answer = await seller.get("/api/v1/status")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, BAD_CREDENTIALS)


async def test_revoking_one_key_leaves_the_others_good(a_seller, service):
    seller = await a_seller()
    async with service.database.shared() as session:
        second = await keys.mint(session, seller.id, "second")
        await keys.revoke(session, second.key_id)
    assert (await seller.get("/api/v1/status")).status_code == 200
    refused = await seller.get(
        "/api/v1/status", headers={"Authorization": f"Bearer {second.api_key}"}
    )
    assert refused.status_code == 401


@pytest.mark.parametrize(("method", "path"), ROUTES + BY_SESSION)
async def test_a_suspended_account_is_refused_everywhere(suspended, method, path):
    answer = await suspended.http.request(method, path)
    assert answer.status_code == 403
    assert answer.json() == {"error": "This account is suspended.", "code": "account_suspended"}
    assert "WWW-Authenticate" not in answer.headers


@pytest.fixture(scope="module")
async def suspended(service):
    from builders import SellerBuilder

    return await SellerBuilder(service)(suspended=True)


async def test_suspending_works_on_the_next_request_and_so_does_its_end(a_seller):
    seller = await a_seller()
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200
    await seller.set(suspended=True)
    assert (await seller.post("/api/v1/heartbeat")).status_code == 403
    await seller.set(suspended=False)
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200


async def test_an_account_that_falls_back_to_free_keeps_its_key(a_seller):
    seller = await a_seller()
    await seller.set(plan="free")
    assert (await seller.get("/api/v1/status")).json()["sync_mode"] == "read_only"


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1", "/nothing", "/api/v1/uploads/abc", "/openapi/nothing"]
)
async def test_an_unknown_route_is_not_found_also_without_credentials(service, path):
    async with service.client() as http:
        answer = await http.get(path)
    assert answer.status_code == 404
    assert set(answer.json()) == {"error", "code", "status", "request_id"}
    assert (answer.json()["code"], answer.json()["status"]) == ("not_found", 404)


async def test_an_unknown_upload_is_not_found(a_seller):
    seller = await a_seller()
    answer = await seller.get("/api/v1/uploads/999999999")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert set(answer.json()) == {"error", "code"}


@pytest.mark.parametrize("upload_id", ["0", "-1", "9223372036854775808", "9" * 40])
async def test_an_impossible_upload_id_is_not_found(a_seller, upload_id):
    seller = await a_seller()
    answer = await seller.get(f"/api/v1/uploads/{upload_id}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "action"), [("GET", ""), ("POST", "/confirm"), ("POST", "/discard")]
)
async def test_a_foreign_upload_is_not_found_in_the_very_same_words(a_seller, method, action):
    mine, theirs = await a_seller(), await a_seller()
    upload_id = (await theirs.upload(a_csv(a_row()))).json()["upload_id"]
    foreign = await mine.http.request(method, f"/api/v1/uploads/{upload_id}{action}")
    absent = await mine.http.request(method, f"/api/v1/uploads/999999999{action}")
    assert foreign.status_code == absent.status_code == 404
    assert set(foreign.json()) == {"error", "code"}
    assert foreign.json()["error"].replace(str(upload_id), "N") == absent.json()["error"].replace(
        "999999999", "N"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/heartbeat",
        "/api/v1/sync/request",
        "/api/v1/sync/log",
        "/api/v1/sync/upload-request",
        "/api/v1/sync",
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
async def test_the_key_is_checked_before_the_body(service, suspended, path, content_type):
    headers = {"Content-Type": content_type}
    async with service.client() as http:
        anonymous = await http.post(path, content=b"{not json", headers=headers)
    locked_out = await suspended.post(path, content=b"{not json", headers=headers)
    assert (anonymous.status_code, locked_out.status_code) == (401, 403)


async def test_the_body_of_a_caller_without_a_key_is_not_even_read(service):
    read = 0

    async def endless():
        nonlocal read
        for _ in range(200):
            read += 1
            yield b"x" * 100_000

    # ASGITransport hands the body over as it is asked for.
    async with service.client() as http:
        answer = await http.post(
            "/api/v1/sync", content=endless(), headers={"Content-Type": "text/csv"}
        )
    assert answer.status_code == 401
    assert read < 200
