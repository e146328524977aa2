"""The pages of members, without a browser: what they answer, and what their headers forbid.

With one: tests/system/test_browser.py.
"""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markupsafe import escape

from browsers import A_PASSWORD, accept, invited, joined, reset, signed_in
from cardsync.asgi import create_app
from cardsync.dashboard.assets import asset_url
from cardsync.platform import clock

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Elements(HTMLParser):
    """Every element with its attributes; that tags are closed in their order."""

    VOID = {"meta", "link", "input", "img", "br", "!doctype"}  # noqa: RUF012

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


def elements(answer) -> Elements:
    assert answer.headers["Content-Type"].startswith("text/html")
    found = Elements(answer.text)
    # The choices of theme and density are within their labels; the account's user name is
    # hidden and only helps a password manager.
    shown = [one for one in found.all("input") if "hidden" not in one]
    inputs = [one for one in shown if one.get("type") not in ("hidden", "radio")]
    labels = [label for label in found.all("label") if "for" in label]
    assert {field["id"] for field in inputs} == {label["for"] for label in labels}
    assert len(found.all("h1")) == len(found.all("main")) == 1
    ids = [attrs["id"] for _, attrs in found.found if "id" in attrs]
    assert len(set(ids)) == len(ids)
    for _, attrs in found.found:
        assert set((attrs.get("aria-describedby") or "").split()) <= set(ids)
        assert "style" not in attrs
        assert not any(name.startswith("on") for name in attrs)
    assert all((script.get("src") or "").startswith("/static/") for script in found.all("script"))
    return found


def locked_down(answer) -> None:
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_signing_in_leads_to_the_account_and_signing_out_back(a_seller, service):
    seller = await a_seller()
    async with service.client() as http:
        page = await http.get("/sign-in")
        locked_down(page)
        assert [field["name"] for field in elements(page).all("input")] == ["email", "password"]
        answer = await http.post(
            "/sign-in", data={"email": seller.email, "password": seller.password}
        )
        assert (answer.status_code, answer.headers["Location"]) == (303, "/today")
        account = await http.get("/account")
        locked_down(account)
        assert seller.email in account.text
        assert (await http.get("/sign-in")).headers["Location"] == "/today"
        [token] = {
            field["value"]
            for field in elements(account).all("input")
            if field.get("name") == "csrf_token"
        }
        out = await http.post("/sign-out", data={"csrf_token": token})
        assert (out.status_code, out.headers["Location"]) == (303, "/sign-in?signed_out=here")
        assert "You are signed out." in (await http.get(out.headers["Location"])).text
        assert (await http.get("/account")).headers["Location"] == "/sign-in?next=/account"


@pytest.mark.parametrize(
    ("everywhere", "other_is_in"), [({}, True), ({"everywhere": "true"}, False)]
)
async def test_signing_out_here_or_everywhere(a_seller, everywhere, other_is_in):
    seller = await a_seller()
    browser, other = await signed_in(seller), await signed_in(seller)
    form = {"csrf_token": browser.session["csrf_token"], **everywhere}
    answers = [await browser.http.post("/sign-out", data=form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert (await browser.is_in(), await other.is_in()) == (False, other_is_in)


@pytest.mark.parametrize("form", [{}, {"csrf_token": ""}, {"csrf_token": "é"}])
async def test_signing_out_needs_the_forms_token(a_seller, form):
    browser = await signed_in(await a_seller())
    answer = await browser.http.post("/sign-out", data=form)
    assert answer.status_code == 403
    elements(answer)
    assert await browser.is_in()


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/invitations/" + "a" * 43])
@pytest.mark.parametrize(
    "told", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}], ids=str
)
async def test_another_sites_form_is_refused_in_words(service, path, told):
    async with service.client() as http:
        answer = await http.post(
            path, data={"email": "a@example.invalid", "password": "x"}, headers=told
        )
    assert answer.status_code == 403
    locked_down(answer)
    assert "another site" in answer.text
    elements(answer)


async def test_a_link_in_a_letter_opens_from_any_site(a_seller, service):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    async with service.client() as http:
        answer = await http.get(f"/invitations/{token}", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200


async def test_wrong_credentials_are_told_beside_the_fields_and_the_address_stays(
    a_seller, service
):
    seller = await a_seller()
    async with service.client() as http:
        answer = await http.post("/sign-in", data={"email": seller.email, "password": "a guess"})
    assert answer.status_code == 401
    found = elements(answer)
    [alert] = [attrs for _, attrs in found.found if attrs.get("role") == "alert"]
    assert alert["id"] == "problem"
    email, password = found.all("input")
    assert (email["value"], email["aria-invalid"]) == (seller.email, "true")
    assert "value" not in password
    assert "a guess" not in answer.text
    assert "<title>Error:" in answer.text


async def test_a_suspended_seller_is_told_so(a_seller, service):
    seller = await a_seller(suspended=True)
    async with service.client() as http:
        answer = await http.post(
            "/sign-in", data={"email": seller.email, "password": seller.password}
        )
    assert answer.status_code == 403
    assert "This account is suspended." in answer.text


NASTY = "\"><script>alert(1)</script>&' $heading ${x}"


async def test_what_is_typed_comes_back_as_text_alone(a_seller, service):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    async with service.client() as http:
        for path, form in (
            ("/sign-in", {"email": NASTY, "password": "x"}),
            (f"/invitations/{token}", {"name": NASTY, "password": "short"}),
        ):
            answer = await http.post(path, data=form)
            assert NASTY in [field.get("value") for field in elements(answer).all("input")]
    _, browser = await accept(service, token, name=NASTY, password=A_PASSWORD)
    page = await browser.get("/account")
    elements(page)
    assert escape(NASTY) in page.text


async def test_an_invitation_is_accepted_on_its_page(a_seller, service):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}", "owner")
    async with service.client() as http:
        page = await http.get(f"/invitations/{token}")
        locked_down(page)
        assert "as owner" in page.text
        assert [field["name"] for field in elements(page).all("input")] == [
            "email",
            "name",
            "password",
        ]
        short = await http.post(f"/invitations/{token}", data={"name": "Bea", "password": "short"})
        assert (short.status_code, "8 to 1000 characters" in short.text) == (422, True)
        _, name, password = elements(short).all("input")
        assert (name["value"], "aria-invalid" in name, password["aria-invalid"]) == (
            "Bea",
            False,
            "true",
        )
        answer = await http.post(
            f"/invitations/{token}", data={"name": "Bea", "password": A_PASSWORD}
        )
        assert (answer.status_code, answer.headers["Location"]) == (303, "/today")
        assert "Bea" in (await http.get("/account")).text


async def test_a_new_password_asks_for_no_name(a_seller, service):
    seller = await a_seller()
    browser = await signed_in(seller)
    token = await reset(seller, browser.member_id)
    async with service.client() as http:
        page = await http.get(f"/invitations/{token}")
        assert [field["name"] for field in elements(page).all("input")] == ["email", "password"]
        assert (
            await http.post(f"/invitations/{token}", data={"password": A_PASSWORD})
        ).status_code == 303
        assert "A Seller" in (await http.get("/account")).text
    assert not await browser.is_in()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_link_that_is_no_longer_good_is_told_in_words(service, method):
    async with service.client() as http:
        answer = await http.request(
            method, "/invitations/" + "a" * 43, content=b"password=12345678&name=x", headers=FORM
        )
    assert answer.status_code == 404
    locked_down(answer)
    assert "ask for a new one" in answer.text
    elements(answer)


@pytest.mark.parametrize(
    "body",
    [b"\xff=1", b"&".join(b"a=1" for _ in range(30)), b"", b"email", b"email=%00&password=%00"],
)
async def test_a_form_that_is_none_is_refused(service, body):
    async with service.client() as http:
        answer = await http.post("/sign-in", content=body, headers=FORM)
    assert answer.status_code in (400, 401, 422)
    elements(answer)


async def test_the_assets_are_there_and_nothing_else(service):
    async with service.client() as http:
        style = await http.get(asset_url("app.css"))
        mark = await http.get(asset_url("mark.svg"))
        assert style.headers["Content-Type"].startswith("text/css")
        assert mark.headers["Content-Type"].startswith("image/svg+xml")
        assert not re.search(r'url\((?!"data:)|@import', style.text)
        assert re.fullmatch(r"/static/mark\.[0-9a-f]{12}\.svg", mark.url.path)
        assert "immutable" in mark.headers["Cache-Control"]
        for page in ("/sign-in", "/nothing"):
            text = (await http.get(page, headers={"Accept": "text/html"})).text
            assert text.count(mark.url.path) == 2, page
        for other in ("mark.svg", "pages.css", "frame.html", "..%2fpages.py", "x"):
            assert (await http.get(f"/pages/{other}")).status_code == 404


# Credits


async def test_the_credits_page_tells_the_balance_and_where_it_came_from(a_seller, service):
    seller, other = await a_seller(), await a_seller()
    await other.grant(7, "not yours")
    browser = await signed_in(seller)
    empty = await browser.get("/account/credits")
    locked_down(empty)
    assert "You have <strong>0</strong> credits." in empty.text
    assert elements(empty).all("table") == []
    await seller.grant(2, "a <b>welcome</b>")
    await seller.set(credits_metering_enabled=True)
    await seller.service.sql(
        seller.id,
        "UPDATE sync_state SET last_pricing_at = :now WHERE seller_id = :id",
        id=seller.id,
        now=clock.now(),
    )
    waited = await seller.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": "k1"})
    assert waited.json()["status"] == "charged"
    page = await browser.get("/account/credits")
    locked_down(page)
    assert "You have <strong>1</strong> credit." in page.text
    assert len(elements(page).all("tr")) == 3
    assert page.text.index("Wait skipped") < page.text.index(
        "Credits given: <bdi>a &lt;b&gt;welcome&lt;/b&gt;</bdi>"
    )
    assert "not yours" not in page.text
    assert '<a href="/account/credits">' in (await browser.get("/account")).text


@pytest.mark.night
async def test_of_a_long_ledger_the_newest_lines_are_shown(a_seller):
    seller = await a_seller()
    for _ in range(201):
        await seller.grant(1)
    page = await (await signed_in(seller)).get("/account/credits")
    assert len(elements(page).all("tr")) == 201
    assert "Showing the latest 200." in page.text


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("top_up", "shown"),
    [
        ("", "<p>Ask your administrator for more.</p>"),
        ("Write to Bea & say <how many>.", "<p>Write to Bea &amp; say &lt;how many&gt;.</p>"),
        (
            "https://pay.example/?a=1&b=2",
            '<a class="button primary" href="https://pay.example/?a=1&amp;b=2" rel="noopener">',
        ),
        (
            "mailto:bea@example.invalid",
            '<a class="button primary" href="mailto:bea@example.invalid" rel="noopener">',
        ),
        ("javascript:alert(1)", "<p>javascript:alert(1)</p>"),
    ],
)
async def test_it_says_how_to_get_more_as_the_operator_wants(
    a_seller, service, alive, top_up, shown
):
    seller = await a_seller()
    app = create_app(service.settings.model_copy(update={"credits_top_up": top_up}))
    own = replace(service, app=app)
    async with alive(app), own.client() as http:
        await http.post("/sign-in", data={"email": seller.email, "password": seller.password})
        page = await http.get("/account/credits")
    elements(page)
    assert shown in page.text


async def test_who_is_not_signed_in_is_led_to_sign_in_and_staff_sees_it(a_seller, service):
    seller = await a_seller()
    async with service.client() as http:
        answer = await http.get("/account/credits")
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "/sign-in?next=/account/credits",
    )
    staff = await joined(seller, "staff-of-credits@example.invalid")
    assert (await staff.get("/account/credits")).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "leads_to"),
    [
        ("/cards/12", "/cards/12"),
        ("/settings/people", "/settings/people"),
        ("//elsewhere.invalid", "/today"),
        ("/\\elsewhere.invalid", "/today"),
        ("https://elsewhere.invalid/cards", "/today"),
        ("/cards\r\nSet-Cookie: a=b", "/today"),
        ("/sign-in", "/today"),
        ("", "/today"),
    ],
)
async def test_signing_in_leads_to_the_page_that_was_wanted_if_it_is_ours(
    a_seller, service, wanted, leads_to
):
    seller = await a_seller()
    async with service.client() as http:
        page = await http.get("/sign-in", params={"next": wanted})
        kept = [field["value"] for field in elements(page).all("input") if field["name"] == "next"]
        assert kept == ([leads_to] if leads_to == wanted else [])
        who = {"email": seller.email, "password": seller.password, "next": wanted}
        answer = await http.post("/sign-in", data=who)
        assert (answer.status_code, answer.headers["Location"]) == (303, leads_to)
