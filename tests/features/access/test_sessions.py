"""Signing in and out: sessions of members, how they end, and that no other site can use them."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.cookies import SimpleCookie

import pytest

from browsers import Browser, joined, signed_in
from cardsync.access import tokens
from cardsync.asgi import create_app
from cardsync.platform import clock
from cardsync.platform.storage import LocalStore
from cardsync.shop.accounts import roster

CSRF = "csrf_failed"


def refused(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_signing_in_tells_who_and_gives_a_token(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert browser.session == {
        "csrf_token": browser.session["csrf_token"],
        "member": {
            "id": browser.member_id,
            "name": "A Seller",
            "email": seller.email,
            "role": "owner",
        },
        "seller": {"id": seller.id, "name": "A Seller"},
    }
    again = await browser.get("/api/session")
    assert again.status_code == 200
    # The token is masked anew each time.
    token = again.json()["csrf_token"]
    assert token != browser.session["csrf_token"]
    assert again.json() == browser.session | {"csrf_token": token}
    for told in (token, browser.session["csrf_token"]):
        assert tokens.csrf_is_right(browser.cookie, told)
    assert again.headers["Cache-Control"] == "no-store"


async def test_the_address_may_be_written_in_any_case(a_seller):
    seller = await a_seller()
    assert await (await signed_in(seller, email=f" {seller.email.upper()} ")).is_in()


@pytest.mark.parametrize("wrong", ["password", "email", "both"])
async def test_what_is_wrong_is_not_told(a_seller, service, wrong):
    seller = await a_seller()
    email = seller.email if wrong == "password" else "nobody@example.invalid"
    password = seller.password if wrong == "email" else "a guess"
    async with service.client() as http:
        answer = await http.post("/api/session", json={"email": email, "password": password})
    assert answer.status_code == 401
    assert answer.json() == {
        "error": "The email or the password is wrong.",
        "code": "invalid_credentials",
    }
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"email": "a@example.invalid"},
        {"email": 1, "password": "x"},
        {"email": "a", "password": "x" * 1001},
        [],
    ],
)
async def test_a_body_of_another_shape_is_refused(service, body):
    async with service.client() as http:
        assert refused(await http.post("/api/session", json=body)) == (422, "invalid_payload")


async def test_only_hashes_are_kept(a_seller, service):
    seller = await a_seller()
    browser = await signed_in(seller)
    [row] = await service.sql(
        seller.id, "SELECT * FROM member_session WHERE seller_id = :id", id=seller.id
    )
    assert row["token_hash"] == tokens.token_hash(browser.cookie)
    assert browser.cookie not in str(row)


def cookie_of(answer):
    [(_, morsel)] = SimpleCookie(answer.headers["Set-Cookie"]).items()
    return morsel


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(a_seller, service):
    seller = await a_seller()
    async with service.client() as http:
        answer = await http.post(
            "/api/session", json={"email": seller.email, "password": seller.password}
        )
    cookie = cookie_of(answer)
    assert cookie.key == "cardsync_session"
    assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "lax", "/")
    assert (cookie["domain"], cookie["secure"], cookie["max-age"]) == ("", "", str(30 * 24 * 3600))


async def test_behind_https_the_cookie_is_secure_and_bound_to_the_host(a_seller, service, alive):
    seller = await a_seller()
    settings = service.settings.model_copy(update={"public_url": "https://cards.example"})
    app = create_app(settings)
    secure = replace(service, settings=settings, app=app)
    async with alive(app), secure.client() as http:
        answer = await http.post(
            "/api/session", json={"email": seller.email, "password": seller.password}
        )
        cookie = cookie_of(answer)
        assert cookie.key == "__Host-cardsync_session"
        assert cookie["secure"] is True
        assert (await http.get("/api/session")).status_code == 200
        # The name that binds to nothing is not even looked at.
        bare = {"Cookie": f"cardsync_session={cookie.value}"}
        http.cookies.clear()
        assert (await http.get("/api/session", headers=bare)).status_code == 401


async def test_a_new_sign_in_is_a_new_session_and_ends_the_browsers_old_one(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    first = browser.cookie
    await browser.http.post(
        "/api/session", json={"email": seller.email, "password": seller.password}
    )
    assert browser.cookie != first
    old = {"Cookie": f"cardsync_session={first}"}
    async with seller.service.client() as http:
        assert (await http.get("/api/session", headers=old)).status_code == 401
    assert await browser.is_in()


async def test_a_cookie_that_somebody_planted_is_never_adopted(a_seller):
    seller = await a_seller()
    planted = tokens.new_token()
    async with seller.service.client(Cookie=f"cardsync_session={planted}") as http:
        await http.post("/api/session", json={"email": seller.email, "password": seller.password})
        assert http.cookies["cardsync_session"] != planted
    async with seller.service.client(Cookie=f"cardsync_session={planted}") as http:
        assert (await http.get("/api/session")).status_code == 401


@pytest.mark.parametrize(
    "cookie", ["", "x", "a" * 43, "a" * 5000, "ü" * 43, 'é"; cardsync_session']
)
async def test_a_cookie_that_is_none_of_ours_is_refused(service, cookie):
    async with service.client() as http:
        header = f"cardsync_session={cookie}".encode("latin-1")
        answer = await http.get("/api/session", headers={"Cookie": header})
    assert refused(answer) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="cardsync"')


# How sessions end.


async def test_signing_out_ends_this_session_alone(a_seller):
    seller = await a_seller()
    here, there = await signed_in(seller), await signed_in(seller)
    cookie = here.cookie
    answer = await here.sign_out()
    assert (answer.status_code, answer.json()) == (200, {"deleted": True})
    assert cookie_of(answer)["max-age"] == "0"
    assert not await here.is_in()
    async with seller.service.client(Cookie=f"cardsync_session={cookie}") as http:
        assert refused(await http.get("/api/session")) == (401, "unauthorized")
    assert await there.is_in()


async def test_signing_out_everywhere_ends_all_of_the_members_and_nobody_elses(a_seller):
    seller = await a_seller()
    here, there = await signed_in(seller), await signed_in(seller)
    colleague = await joined(seller, f"c-{seller.email}")
    assert (await here.sign_out(everywhere="true")).status_code == 200
    assert not await here.is_in()
    assert not await there.is_in()
    assert await colleague.is_in()


async def test_signing_out_twice_at_once_ends_it_once_and_breaks_nothing(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    cookie = {"Cookie": f"cardsync_session={browser.cookie}"}
    answers = await asyncio.gather(*(browser.sign_out() for _ in range(4)))
    assert {answer.status_code for answer in answers} <= {200, 401}
    assert 200 in {answer.status_code for answer in answers}
    async with seller.service.client() as http:
        assert (await http.get("/api/session", headers=cookie)).status_code == 401


async def test_a_session_without_requests_ends_after_twelve_hours(a_seller):
    browser = await signed_in(await a_seller())
    for _ in range(3):
        clock.shift(timedelta(hours=11, minutes=59))
        assert await browser.is_in()
    clock.shift(timedelta(hours=12))
    assert not await browser.is_in()


async def test_a_session_ends_after_thirty_days_however_busy(a_seller):
    browser = await signed_in(await a_seller())
    for _ in range(60):
        assert await browser.is_in()
        clock.shift(timedelta(hours=11, minutes=58))
    assert await browser.is_in()
    clock.shift(timedelta(hours=4))
    assert not await browser.is_in()


async def test_using_a_session_writes_once_a_minute_at_most(a_seller, service):
    seller = await a_seller()
    clock.stop()
    browser = await signed_in(seller)
    # The first use names the browser.
    await browser.get("/api/v1/status")
    query = "SELECT last_seen_at FROM member_session WHERE seller_id = :id"
    [begun] = await service.sql(seller.id, query, id=seller.id)
    clock.shift(timedelta(seconds=59))
    await browser.get("/api/v1/status")
    assert [begun] == await service.sql(seller.id, query, id=seller.id)
    clock.shift(timedelta(seconds=1))
    await browser.get("/api/v1/status")
    assert [{"last_seen_at": clock.now()}] == await service.sql(seller.id, query, id=seller.id)


async def test_a_suspended_seller_is_refused_at_once_and_nobody_signs_in(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await seller.set(suspended=True)
    assert refused(await browser.get("/api/session")) == (403, "account_suspended")
    again = await browser.http.post(
        "/api/session", json={"email": seller.email, "password": seller.password}
    )
    assert refused(again) == (403, "account_suspended")
    await seller.set(suspended=False)
    assert await browser.is_in()


async def test_a_removed_member_is_out_at_once(a_seller, service):
    seller = await a_seller()
    bea = await joined(seller, f"bea-{seller.email}")
    async with service.database.shared() as session:
        await roster.remove(session, bea.member_id)
    assert not await bea.is_in()
    credentials = {"email": f"bea-{seller.email}", "password": "correct horse battery"}
    assert refused(await bea.http.post("/api/session", json=credentials)) == (
        401,
        "invalid_credentials",
    )


async def test_a_role_that_changes_holds_from_the_next_request_on(a_seller, service):
    seller = await a_seller()
    bea = await joined(seller, f"bea-{seller.email}")
    async with service.database.shared() as session:
        await roster.change_role(session, bea.member_id, "owner")
    assert (await bea.get("/api/session")).json()["member"]["role"] == "owner"


async def test_deleting_the_seller_ends_its_sessions(a_seller, service):
    from cardsync.shop.accounts import sellers
    from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables

    seller = await a_seller()
    browser = await signed_in(seller)
    tables = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]
    await sellers.delete_seller(service.database, service.work.store, seller.id, tables)
    assert not await browser.is_in()


async def test_sessions_that_are_over_are_not_kept(a_seller, service):
    from cardsync.operations.processes.retention import tidy

    seller = await a_seller()
    await signed_in(seller)
    kept = await signed_in(seller)
    clock.shift(timedelta(hours=11))
    assert await kept.is_in()
    clock.shift(timedelta(hours=2))
    await tidy(service.work)
    [row] = await service.sql(
        seller.id, "SELECT token_hash FROM member_session WHERE seller_id = :id", id=seller.id
    )
    assert row["token_hash"] == tokens.token_hash(kept.cookie)


@dataclass(frozen=True)
class Away(LocalStore):
    """A bucket that lists nothing."""

    async def sweep(self, prefix: str, before: datetime) -> int:
        raise OSError("away")


async def test_a_step_of_tidying_that_fails_stops_no_later_one(a_seller, service):
    from cardsync.operations.processes.retention import tidy

    seller = await a_seller()
    await signed_in(seller)
    clock.shift(timedelta(hours=13))
    store = service.work.store
    work = replace(service.work, store=Away(store.root, store.secret))
    with pytest.raises(ExceptionGroup) as failed:
        await tidy(work)
    assert {str(e) for e in failed.value.exceptions} == {"away"}
    kept = "SELECT FROM member_session WHERE seller_id = :id"
    assert await service.sql(seller.id, kept, id=seller.id) == []


# CSRF.


async def test_a_write_needs_the_sessions_own_token(a_seller):
    seller = await a_seller()
    browser, other = await signed_in(seller), await signed_in(seller)
    for headers in (
        {},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "é"},
        {"X-CSRF-Token": other.session["csrf_token"]},
    ):
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = await browser.http.post("/api/pull_sessions", headers=raw)
        assert refused(answer) == (403, CSRF), headers
    assert refused(await browser.http.delete("/api/session")) == (403, CSRF)
    assert await browser.is_in()


async def test_reading_needs_no_token(a_seller):
    browser = await signed_in(await a_seller())
    assert (await browser.get("/api/orders")).status_code == 200


OTHER_SITES = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://{host}"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://{host}"},
]


@pytest.mark.parametrize("told", OTHER_SITES, ids=str)
async def test_another_site_can_neither_write_nor_sign_in_nor_accept(a_seller, told):
    seller = await a_seller()
    browser = await signed_in(seller)
    headers = {
        name: value.format(host=browser.http.base_url.netloc.decode())
        for name, value in told.items()
    }
    assert refused(await browser.post("/api/pull_sessions", headers=headers)) == (403, CSRF)
    credentials = {"email": seller.email, "password": seller.password}
    async with seller.service.client() as http:
        assert refused(await http.post("/api/session", json=credentials, headers=headers)) == (
            403,
            CSRF,
        )
        accepting = await http.post(
            f"/api/invitations/{'a' * 43}", json={"password": "x"}, headers=headers
        )
        assert refused(accepting) == (403, CSRF)
    assert await browser.is_in()


@pytest.mark.parametrize(
    "told",
    [{}, {"Sec-Fetch-Site": "same-origin", "Origin": "http://{host}"}, {"Origin": "http://{host}"},
     {"Sec-Fetch-Site": "none"}],
    ids=str,
)  # fmt: skip
async def test_our_own_pages_may(a_seller, told):
    browser = await signed_in(await a_seller())
    headers = {
        name: value.format(host=browser.http.base_url.netloc.decode())
        for name, value in told.items()
    }
    assert (await browser.send("DELETE", "/api/session", headers=headers)).status_code == 200


# Which routes.


async def test_routes_of_both_take_a_session_and_give_what_the_key_gives(a_seller):
    seller = await a_seller()
    await seller.orders(
        [{"order_number": "A-1", "status": "Ready to Ship", "order_date": "11/01/2026"}]
    )
    browser = await signed_in(seller)
    for path in ("/api/orders", "/api/customers", "/api/v1/status"):
        by_key, by_session = await seller.get(path), await browser.get(path)
        assert (by_session.status_code, by_session.json()) == (200, by_key.json()), path
        assert by_session.headers["Cache-Control"] == "no-store"
    opened = await browser.post("/api/pull_sessions")
    assert (opened.status_code, opened.json()["order_count"]) == (201, 1)
    assert (await browser.get(f"/api/pull_sessions/{opened.json()['id']}")).status_code == 200


async def test_a_member_sees_the_own_seller_alone(a_seller):
    mine, theirs = await a_seller(), await a_seller()
    await theirs.orders([{"order_number": "A-1"}])
    browser = await signed_in(mine)
    assert (await browser.get("/api/orders")).json()["total"] == 0
    order = (await theirs.get("/api/orders")).json()["orders"][0]["id"]
    assert (await browser.post(f"/api/orders/{order}/dismiss")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/heartbeat"),
        ("GET", "/api/v1/sync/pending"),
        ("GET", "/api/v1/export/price-updates"),
    ],
)
async def test_the_agents_routes_take_keys_alone(a_seller, method, path):
    browser = await signed_in(await a_seller())
    assert refused(await browser.send(method, path)) == (403, "key_required")
    # The cookie of a session that has ended opens nothing, and is refused for that first.
    cookie = {"Cookie": f"cardsync_session={browser.cookie}"}
    await browser.sign_out()
    answer = await browser.send(method, path, headers=cookie)
    assert refused(answer) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="cardsync", error="invalid_token"'


async def test_a_review_is_confirmed_or_discarded_by_a_member_too(a_seller):
    browser = await signed_in(await a_seller())
    for action in ("confirm", "discard"):
        assert refused(await browser.post(f"/api/v1/uploads/999999999/{action}")) == (
            404,
            "not_found",
        )


async def test_who_sends_a_key_is_judged_by_the_key(a_seller):
    mine, theirs = await a_seller(), await a_seller()
    await theirs.orders([{"order_number": "A-1"}])
    browser = await signed_in(mine)
    by_key = {"Authorization": f"Bearer {theirs.api_key}"}
    assert (await browser.get("/api/orders", headers=by_key)).json()["total"] == 1
    # A key needs no CSRF token, whatever cookie comes along; and a bad key is not made good by a
    # cookie.
    assert (await browser.http.post("/api/pull_sessions", headers=by_key)).status_code == 201
    bad = {"Authorization": "Bearer nonsense"}
    assert refused(await browser.get("/api/orders", headers=bad)) == (401, "unauthorized")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_what_takes_a_session_alone_refuses_a_key(a_seller, service, method):
    seller = await a_seller()
    assert refused(await seller.http.request(method, "/api/session")) == (403, "session_required")
    async with service.client(Authorization="Bearer nonsense") as http:
        assert refused(await http.request(method, "/api/session")) == (401, "unauthorized")
    async with service.client() as http:
        answer = await http.request(method, "/api/session")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="cardsync"'


# Limits.


@pytest.fixture
async def strict(service, alive):
    """The same service with sign-ins limited."""
    settings = service.settings.model_copy(
        update={"rate_limit_sign_in": "5/min:5", "rate_limit_general": "10/min:3"}
    )
    app = create_app(settings)
    async with alive(app):
        yield replace(service, settings=settings, app=app)


@pytest.mark.day
async def test_guessing_is_slowed_down_per_account_and_the_right_password_does_not_help(
    a_seller, strict
):
    seller, other = await a_seller(), await a_seller()
    async with strict.client() as http:
        for _ in range(5):
            await http.post("/api/session", json={"email": seller.email, "password": "a guess"})
        right = {"email": seller.email, "password": seller.password}
        answer = await http.post("/api/session", json=right)
        assert refused(answer) == (429, "rate_limited")
        assert int(answer.headers["Retry-After"]) > 0
        elsewhere = await http.post(
            "/api/session", json={"email": other.email, "password": other.password}
        )
        assert elsewhere.status_code == 200


async def test_a_members_browsers_share_one_limit_and_leave_the_key_its_own(a_seller, strict):
    seller = await a_seller()
    answers = []
    for _ in range(2):
        async with strict.client() as http:
            await http.post(
                "/api/session", json={"email": seller.email, "password": seller.password}
            )
            answers += [(await http.get("/api/v1/status")).status_code for _ in range(2)]
    assert answers == [200, 200, 200, 429]
    async with strict.client(Authorization=f"Bearer {seller.api_key}") as http:
        assert (await http.get("/api/v1/status")).status_code == 200


async def test_a_password_that_changes_during_a_sign_in_wins(a_seller, service):
    """A sign-in that verified the old password a moment too early gets no session."""
    from browsers import accept, reset

    seller = await a_seller()
    browser = await signed_in(seller)
    for round_ in range(5):
        token = await reset(seller, browser.member_id)
        async with service.client() as http:
            credentials = {"email": seller.email, "password": seller.password}
            old, (accepted, new) = await asyncio.gather(
                http.post("/api/session", json=credentials),
                accept(service, token, password=f"new password {round_}"),
            )
            assert accepted.status_code == 201
            if old.status_code == 200:
                # It came first, and was ended by the change.
                assert (await http.get("/api/session")).status_code == 401
        assert isinstance(new, Browser)
        seller.password = f"new password {round_}"


async def test_the_activity_feed_says_who_did_it(a_seller, service):
    seller = await a_seller()
    await seller.orders(
        [{"order_number": "A-1", "status": "Ready to Ship", "order_date": "11/01/2026"}]
    )
    browser = await signed_in(seller)
    opened = await browser.post("/api/pull_sessions")
    await seller.post(f"/api/pull_sessions/{opened.json()['id']}/cancel")
    query = (
        "SELECT regexp_replace(actor, '^key .*', 'key') AS actor, action FROM activity"
        " WHERE seller_id = :id AND action LIKE 'pull%'"
        " ORDER BY id"
    )
    assert await service.sql(seller.id, query, id=seller.id) == [
        {"actor": f"member {browser.member_id}", "action": "pull_session.opened"},
        {"actor": "key", "action": "pull_session.cancelled"},
    ]
