"""An assistant gets access: it finds the server, says who it is, the owner consents, and tokens
follow. The whole way is forms and addresses, without a script.
"""

from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.asgi import create_app
from cardsync.assistant.oauth import clients, grants
from cardsync.platform import clock
from oauth_builder import (
    REDIRECT,
    Assistant,
    a_site,
    connected,
    consented,
    hidden_in,
    registered,
    sign_in_leads_to,
    told_in,
)


async def test_a_client_finds_out_where_everything_is(service):
    origin = service.settings.origin
    async with service.client() as http:
        for path in ("", "/mcp"):
            resource = (await http.get(f"/.well-known/oauth-protected-resource{path}")).json()
            assert resource["resource"] == f"{origin}/mcp"
            assert resource["authorization_servers"] == [origin]
        server = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == origin
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"]
    assert server["client_id_metadata_document_supported"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert server[f"{name}_endpoint"].startswith(f"{origin}/oauth/")


async def test_from_registration_to_a_refreshed_token(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    assistant = await registered(seller.service, "Shop Helper")
    # Who is not signed in signs in, and comes back to the same request.
    async with seller.service.client() as http:
        answer = await http.get("/oauth/authorize", params=assistant.request())
        back = sign_in_leads_to(answer)
        credentials = {"email": seller.email, "password": seller.password, "next": back}
        answer = await http.post("/sign-in", data=credentials)
        assert answer.headers["Location"] == back
        page = await http.get(back)
        assert "Connect “Shop Helper” to your shop?" in page.text
        assert "It registered itself; nobody has checked who it is" in page.text
        assert "assistant.example" in page.text
        assert "A Seller" in page.text
        assert "<script" not in page.text
        policy = page.headers["Content-Security-Policy"]
        assert "form-action 'self' https://assistant.example;" in policy
        assert "frame-ancestors 'none'" in policy
        form = {**hidden_in(page.text), "access": "write", "word": "approve"}
        answer = await http.post("/oauth/authorize", data=form)
    assert answer.headers["Location"].startswith(f"{REDIRECT}?")
    told = told_in(answer)
    assert told["state"] == assistant.state
    assert told["iss"] == seller.service.settings.origin
    answer = await assistant.post("/oauth/token", assistant.exchange(told["code"]))
    assert answer.headers["Cache-Control"] == "no-store"
    first = answer.json()
    assert first["token_type"] == "Bearer"
    assert (first["scope"], first["expires_in"]) == ("mcp:read mcp:write", 3600)
    async with assistant.bearer(first) as http:
        assert (await http.get("/api/cards")).json()["total"] == 1
        assert (await http.post("/api/lists", json={"name": "Binder"})).status_code == 201
    clock.shift(timedelta(seconds=3600))
    async with assistant.bearer(first) as http:
        assert (await http.get("/api/cards")).status_code == 401
    second = (await assistant.refresh(first["refresh_token"])).json()
    assert second["refresh_token"] != first["refresh_token"]
    async with assistant.bearer(second) as http:
        assert (await http.get("/api/cards")).status_code == 200
    entries = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    told = {entry["action"]: entry for entry in entries}
    assert told["list.created"]["actor"].startswith("grant ")
    assert told["assistant.connected"]["summary"].endswith(
        "may read and change, without buyer data"
    )


@pytest.fixture
async def developed(service, alive):
    """The application as developers start it: clients of this machine are read."""
    from dataclasses import replace

    app = create_app(service.settings.model_copy(update={"development_clients": True}))
    async with alive(app):
        yield replace(service, settings=app.state.settings, app=app)


async def test_a_client_is_known_by_the_document_at_its_address(a_seller, developed):
    seller = await a_seller()
    seller.service = developed
    browser = await signed_in(seller)
    async with a_site() as site:
        redirect = "http://127.0.0.1/callback"
        site.shows(
            {
                "client_id": site.url,
                "client_name": "Desk\u202e Helper",
                "redirect_uris": [redirect],
                "token_endpoint_auth_method": "none",
            }
        )
        # The program took any port of its own machine.
        assistant = Assistant(developed, site.url, "http://127.0.0.1:49152/callback")
        page = await browser.get("/oauth/authorize", params=assistant.request())
        assert "Connect “Desk Helper” to your shop?" in page.text
        assert "<dd>127.0.0.1</dd>" in page.text
        tokens = await assistant.tokens(browser)
        assert tokens["scope"] == "mcp:read"
        nowhere = Assistant(developed, site.url, "http://127.0.0.1:99999/callback")
        refused = await browser.get("/oauth/authorize", params=nowhere.request())
        assert (refused.status_code, "Location" in refused.headers) == (400, False)
        # The document is read once an hour.
        assert site.asked == 1
        clock.shift(timedelta(hours=1))
        site.shows({"client_id": "https://another.example/x", "redirect_uris": [redirect]})
        answer = await browser.get("/oauth/authorize", params=assistant.request())
        assert answer.status_code == 400
        assert "belongs to another address" in answer.text
        assert site.asked == 2


async def test_the_owner_grants_less_than_was_asked(a_seller):
    seller = await a_seller()
    assistant, tokens = await connected(seller)
    assert tokens["scope"] == "mcp:read"
    # A refresh never widens.
    wider = (await assistant.refresh(tokens["refresh_token"], scope="mcp:read mcp:write")).json()
    assert wider["scope"] == "mcp:read"
    async with assistant.bearer(wider) as http:
        answer = await http.post("/api/lists", content=b"{")
    assert answer.status_code == 403
    origin = seller.service.settings.origin
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer realm="cardsync", error="insufficient_scope", scope="mcp:write",'
        f' resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
    )


@pytest.mark.night
async def test_a_refresh_may_narrow_and_the_next_one_has_all_again(a_seller):
    seller = await a_seller()
    assistant, tokens = await connected(seller, access="write")
    narrow = (await assistant.refresh(tokens["refresh_token"], scope="mcp:read openid")).json()
    assert narrow["scope"] == "mcp:read"
    async with assistant.bearer(narrow) as http:
        assert (await http.post("/api/lists", json={"name": "x"})).status_code == 403
    wide = (await assistant.refresh(narrow["refresh_token"])).json()
    assert wide["scope"] == "mcp:read mcp:write"


@pytest.mark.night
async def test_a_client_that_asks_to_read_is_offered_no_more(a_seller):
    seller = await a_seller()
    browser, assistant = await signed_in(seller), await registered(seller.service)
    request = assistant.request(scope="mcp:read openid")
    page = await browser.get("/oauth/authorize", params=request)
    assert 'value="write"' not in page.text
    # Nor does a form that says otherwise give more.
    code = told_in(await consented(browser, request, access="write"))["code"]
    tokens = (await assistant.post("/oauth/token", assistant.exchange(code))).json()
    assert tokens["scope"] == "mcp:read"


async def test_the_owner_refuses(a_seller):
    seller = await a_seller()
    assistant = await registered(seller.service)
    answer = await consented(await signed_in(seller), assistant.request(), word="refuse")
    told = told_in(answer)
    assert (told["error"], told["state"]) == ("access_denied", assistant.state)
    assert told["iss"] == seller.service.settings.origin


async def test_staff_are_told_to_ask_an_owner_and_cannot_consent(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    owner, assistant = await signed_in(seller), await registered(seller.service)
    page = await staff.get("/oauth/authorize", params=assistant.request())
    assert page.status_code == 403
    assert "Only an owner of the shop can let it in" in page.text
    # A form that was shown to the owner is the owner's alone.
    shown = hidden_in((await owner.get("/oauth/authorize", params=assistant.request())).text)
    for form in (shown, {**shown, "csrf_token": staff.session["csrf_token"]}):
        answer = await staff.http.post("/oauth/authorize", data={**form, "word": "approve"})
        assert answer.status_code == 403, answer.text
    # Nor may it be changed, or come from another session or site, or come late.
    for change in ({"request": shown["request"][:-1] + "0"}, {"request": ""}, {"csrf_token": ""}):
        form = {**shown, "word": "approve", **change}
        if form["request"] != shown["request"] or not form["csrf_token"]:
            assert (await owner.http.post("/oauth/authorize", data=form)).status_code == 403
    answer = await owner.http.post(
        "/oauth/authorize",
        data={**shown, "word": "approve"},
        headers={"Origin": "https://elsewhere.example"},
    )
    assert answer.status_code == 403
    clock.shift(timedelta(hours=1))
    answer = await owner.http.post("/oauth/authorize", data={**shown, "word": "approve"})
    assert answer.status_code == 403
    async with seller.service.client() as http:
        answer = await http.post("/oauth/authorize", data={**shown, "word": "approve"})
        assert answer.status_code == 403


async def test_an_owner_lists_assistants_and_ends_one(a_seller):
    seller, other = await a_seller(), await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    assistant, tokens = await connected(seller, access="write", buyers="yes")
    [shown] = (await owner.get("/api/assistants")).json()["assistants"]
    assert shown["client_name"] == "A Helper"
    assert (shown["client_host"], shown["last_used_at"]) == (None, None)
    assert (shown["scopes"], shown["buyer_data"]) == (["mcp:read", "mcp:write"], True)
    async with assistant.bearer(tokens) as http:
        for _ in range(2):
            assert (await http.get("/api/lists")).status_code == 200
    [used] = (await owner.get("/api/assistants")).json()["assistants"]
    assert used["last_used_at"] is not None
    path = f"/api/assistants/{shown['id']}"
    assert (await staff.get("/api/assistants")).json()["code"] == "owner_required"
    assert (await staff.send("DELETE", path)).json()["code"] == "owner_required"
    assert (await (await signed_in(other)).send("DELETE", path)).status_code == 404
    assert (await owner.send("DELETE", path)).json() == {"deleted": True}
    async with assistant.bearer(tokens) as http:
        assert (await http.get("/api/lists")).status_code == 401
    answer = await assistant.refresh(tokens["refresh_token"])
    assert answer.json()["error"] == "invalid_grant"
    assert (await owner.send("DELETE", path)).status_code == 200
    assert (await owner.get("/api/assistants")).json() == {"assistants": []}
    entries = (await owner.get("/api/v1/agent/activity")).json()["activity"]
    assert [entry["action"] for entry in entries].count("assistant.revoked") == 1


async def test_a_client_gives_its_access_up(a_seller):
    seller = await a_seller()
    for name in ("access_token", "refresh_token"):
        assistant, tokens = await connected(seller)
        form = {"token": tokens[name], "client_id": assistant.client_id}
        other = form | {"client_id": "csc_another"}
        assert (await assistant.post("/oauth/revoke", other)).status_code == 401
        for _ in range(2):
            assert (await assistant.post("/oauth/revoke", form)).status_code == 200
        async with assistant.bearer(tokens) as http:
            assert (await http.get("/api/lists")).status_code == 401
        answer = await assistant.refresh(tokens["refresh_token"])
        assert answer.json()["error"] == "invalid_grant"
    assert (await assistant.post("/oauth/revoke", {"token": "unknown"})).status_code == 200
    assert (await assistant.post("/oauth/revoke", {})).json()["error"] == "invalid_request"


async def test_what_is_past_is_dropped(a_seller):
    seller = await a_seller()
    database = seller.service.database
    unused = await registered(seller.service)
    assistant, _ = await connected(seller)

    async def are_known():
        async with database.shared() as session:
            return [await clients.is_known(session, one.client_id) for one in (unused, assistant)]

    async def grants_left():
        return len(
            await seller.service.sql(
                seller.id, "SELECT FROM oauth_grant WHERE seller_id = :id", id=seller.id
            )
        )

    clock.shift(timedelta(hours=23))
    await grants.drop_past(database, clock.now())
    assert await are_known() == [True, True]
    clock.shift(timedelta(hours=2))
    await grants.drop_past(database, clock.now())
    assert await are_known() == [False, True]
    assert await grants_left() == 1
    clock.shift(timedelta(days=30))
    await grants.drop_past(database, clock.now())
    assert await grants_left() == 0
    for table in ("access_token", "oauth_code", "refresh_token"):
        query = f"SELECT FROM {table} WHERE seller_id = :id"
        assert await seller.service.sql(seller.id, query, id=seller.id) == []


@pytest.mark.night
async def test_a_use_is_noted_once_a_minute(a_seller):
    seller = await a_seller()
    clock.stop()
    assistant, tokens = await connected(seller)
    noted = []
    async with assistant.bearer(tokens) as http:
        for seconds in (0, 59, 1):
            clock.shift(timedelta(seconds=seconds))
            assert (await http.get("/api/lists")).status_code == 200
            query = "SELECT last_used_at FROM oauth_grant WHERE seller_id = :id"
            [row] = await seller.service.sql(seller.id, query, id=seller.id)
            noted.append(row["last_used_at"])
    assert noted[0] == noted[1] == clock.now() - timedelta(seconds=60)
    assert noted[2] == clock.now()


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ([], "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://assistant.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://127.0.0.1:99999/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://assistant.example:0/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT + "#part"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [7]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT], "client_name": 7}, "invalid_client_metadata"),
        (
            {"redirect_uris": [REDIRECT], "grant_types": ["client_credentials"]},
            "invalid_client_metadata",
        ),
        ({"redirect_uris": [REDIRECT], "response_types": ["token"]}, "invalid_client_metadata"),
    ],
)
async def test_a_registration_that_is_refused(service, told, error):
    async with service.client() as http:
        answer = await http.post("/oauth/register", json=told)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_what_strangers_ask_is_rate_limited_by_their_network(service):
    async with service.client() as http:
        for path in ("/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/authorize"):
            answer = await http.post(path)
            assert answer.headers["RateLimit-Policy"].startswith('"anonymous";'), path
