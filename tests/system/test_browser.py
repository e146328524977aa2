"""The pages of members in a real browser: Debian's chromium, against a real server. Nothing is
installed here; without chromium these are skipped.

Every page is looked at on a telephone and on a desktop, light and dark: nothing overflows,
everything can be read, hit and reached.
"""

from __future__ import annotations

import json
import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import httpx
import pytest
from tests.system.processes import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
PASSWORD = "correct horse battery"
# `make test` takes the first, the soak all of them.
LOOKS = [
    (390, "light"),
    (1280, "dark"),
    pytest.param(390, "dark", marks=pytest.mark.night),
    pytest.param(1280, "light", marks=pytest.mark.night),
]

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]

# Text against what lies behind it, by WCAG: the worst ratio and its element.
CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * x + .7152 * y + .0722 * z; };
  const behind = element => { for (; element; element = element.parentElement) { const colour = rgb(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour; } return [255, 255, 255]; };
  const shown = [...document.querySelectorAll('body *')].filter(e => e.matches('input:not([type=hidden])') ||
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  return shown.map(e => { const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((p, q) => q - p);
    return [(a + .05) / (b + .05), e.outerHTML.slice(0, 80)]; }).sort((p, q) => p[0] - q[0])[0];
}"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
SMALL = """least => [...document.querySelectorAll('button, input:not([type=hidden])')].filter(e => e.checkVisibility())
  .map(e => e.getBoundingClientRect()).filter(box => box.height < least || box.width < least || box.left < 0 || box.right > innerWidth).length"""


def admin(server: Server, *command: str) -> dict[str, Any]:
    ran = server.run("admin", *command, "--json")
    assert ran.code == 0, ran.err
    told: dict[str, Any] = json.loads(ran.out)
    return told


@pytest.fixture
def shop(server: Server) -> dict[str, Any]:
    """Its owner's email and password, and its seller_id. Each test has its own."""
    name = "Aunt Agatha's Extraordinary Card Emporium"
    email = f"agatha-{uuid4().hex}@example.invalid"
    return admin(server, "seller", "create", "--name", name, "--email", email)


@contextmanager
def a_window(browser: Browser, server: Server, **options: Any) -> Iterator[Page]:
    """A page of a fresh profile; what the browser complains of meanwhile is an error."""
    context: BrowserContext = browser.new_context(base_url=server.url, **options)
    context.set_default_timeout(120_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url}: {request.failure}"))
    yield page
    context.close()
    # A refusal that the test asked for is told by its status; what a page still loads when it is
    # left is broken off.
    expected = ("the server responded with a status of", "net::ERR_ABORTED")
    assert [text for text in complaints if not any(part in text for part in expected)] == []


def sign_in(page: Page, shop: dict[str, Any]) -> None:
    page.goto("/sign-in")
    page.get_by_label("Email").fill(shop["email"])
    page.get_by_label("Password").fill(shop["password"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/today")
    page.goto("/account")


def is_in(page: Page) -> bool:
    return page.request.get("/api/session").status == 200


def test_a_member_signs_in_and_out_with_the_keyboard_alone(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    with a_window(browser, server) as page:
        page.goto("/sign-in")
        for text in (shop["email"], shop["password"]):
            page.keyboard.press("Tab")
            page.keyboard.type(text)
        page.keyboard.press("Enter")
        page.wait_for_url("**/today")
        page.goto("/account")
        assert page.get_by_label("Email").input_value() == shop["email"]
        while page.evaluate("document.activeElement.textContent.trim()") != "Sign out":
            page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/sign-in?signed_out=here")
        assert page.get_by_role("status").inner_text() == "You are signed out."
        page.go_back()
        assert page.url.endswith("/sign-in?next=/account")


@pytest.mark.night
def test_a_wrong_password_is_told_and_the_next_one_is_right(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    with a_window(browser, server) as page:
        page.goto("/sign-in")
        page.get_by_label("Email").fill(shop["email"])
        page.get_by_label("Password").fill("a guess")
        page.keyboard.press("Enter")
        assert page.get_by_role("alert").inner_text() == "The email or the password is wrong."
        assert page.get_by_label("Email").input_value() == shop["email"]
        page.get_by_label("Password").fill(shop["password"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/today")
        page.goto("/account")


@pytest.mark.night
def test_an_invitation_is_accepted_from_the_link_that_the_operator_prints(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    made = admin(
        server,
        "member",
        "add",
        str(shop["seller_id"]),
        "--email",
        "bea@example.invalid",
        "--role",
        "staff",
    )
    with a_window(browser, server) as page:
        page.goto(made["invite_url"])
        assert page.get_by_label("Email").input_value() == "bea@example.invalid"
        page.get_by_label("Your name").fill("Bea Bell")
        page.get_by_label("Choose a password").fill("short")
        page.get_by_role("button", name="Join").click()
        # The browser itself asks for a longer one.
        assert page.evaluate("document.querySelector('#password').validity.tooShort")
        page.get_by_label("Choose a password").fill(PASSWORD)
        page.get_by_role("button", name="Join").click()
        page.wait_for_url("**/today")
        page.goto("/account")
        assert page.get_by_label("Name").input_value() == "Bea Bell"
        page.goto(made["invite_url"])
        assert page.get_by_role("heading").inner_text() == "This link is no longer valid"


@pytest.mark.night
def test_the_cookie_is_out_of_reach_of_scripts(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    with a_window(browser, server) as page:
        sign_in(page, shop)
        assert page.evaluate("document.cookie") == ""
        [cookie] = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")


@pytest.mark.first(1)
@pytest.mark.parametrize("where", ["/sign-out", "/api/session"])
def test_another_sites_form_changes_nothing(
    browser: Browser, server: Server, shop: dict[str, Any], where: str
) -> None:
    form = (
        f'<form method="post" action="{server.url}{where}"><input name="email"'
        ' value="eve@example.invalid"></form>'
    )
    with a_window(browser, server) as page:
        sign_in(page, shop)
        body = (
            "<!doctype html><link rel=icon"
            f" href=data:,>{form}<script>document.forms[0].submit()</script>"
        )
        page.route(
            "http://evil.example/**",
            lambda route: route.fulfill(content_type="text/html", body=body),
        )
        with page.expect_response(f"{server.url}{where}") as answer:
            page.goto("http://evil.example/", wait_until="commit")
        assert answer.value.status == 403
        assert is_in(page)


@pytest.mark.night
def test_signing_out_everywhere_is_seen_in_the_other_window(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    with a_window(browser, server) as here, a_window(browser, server) as there:
        sign_in(here, shop)
        sign_in(there, shop)
        here.get_by_role("button", name="Sign out on all my devices").click()
        here.wait_for_url("**/sign-in?signed_out=everywhere")
        there.reload()
        assert urlsplit(there.url).path == "/sign-in"


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_fits_can_be_read_and_can_be_hit(
    browser: Browser, server: Server, shop: dict[str, Any], width: int, scheme: Any
) -> None:
    email = f"a.rather.long.address.of.a.member.{width}.{scheme}@cards.example.invalid"
    link = admin(
        server, "member", "add", str(shop["seller_id"]), "--email", email, "--role", "staff"
    )["invite_url"]
    size: Any = {"width": width, "height": 844}
    reason = "for a shop whose operator writes long reasons into the ledger"
    admin(server, "credits", "grant", str(shop["seller_id"]), "10000000", "--reason", reason)
    with a_window(browser, server, viewport=size, color_scheme=scheme) as page:

        def look(name: str) -> None:
            ratio, element = page.evaluate(CONTRAST)
            assert ratio >= 4.5, (name, ratio, element)
            assert page.evaluate(OVERFLOW) == 0, name
            assert page.evaluate(SMALL, 44 if width == 390 else 24) == 0, name
            if folder := os.environ.get("CARDSYNC_SCREENSHOTS"):
                page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)

        page.goto("/sign-in")
        look("sign-in")
        page.get_by_label("Email").fill(email)
        page.get_by_label("Password").fill("a guess")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        look("sign-in-refused")
        page.goto(link)
        look("invitation")
        page.get_by_label("Your name").fill("Bea " + "of the very long name " * 4)
        page.get_by_label("Choose a password").fill(PASSWORD)
        page.get_by_role("button", name="Join").click()
        page.wait_for_url("**/today")
        page.goto("/account")
        look("account")
        page.get_by_role("link", name="Credits").click()
        page.wait_for_url("**/account/credits")
        page.get_by_role("table", name="Credit history").wait_for()
        look("credits")
        page.goto(link)
        look("invitation-used")


class _Assistant(BaseHTTPRequestHandler):
    """The member's own program, which waits for the answer of the consent page."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>Done</title>You may go back."
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def assistant() -> Iterator[HTTPServer]:
    waiting = HTTPServer(("127.0.0.1", 0), _Assistant)
    Thread(target=waiting.serve_forever, daemon=True).start()
    yield waiting
    waiting.shutdown()
    waiting.server_close()


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_an_owner_lets_an_assistant_in_by_keyboard_and_without_scripts(
    browser: Browser,
    server: Server,
    shop: dict[str, Any],
    assistant: HTTPServer,
    width: int,
    scheme: Any,
) -> None:
    """It alone finds that the page's policy stops a browser from going back to the assistant, that
    the form needs a script or a mouse, that the page can't be read, and that the page's test of the
    connection fails where the connection works.
    """
    made = httpx.post(
        f"{server.url}/oauth/register",
        json={
            "client_name": "An assistant of a rather long name " * 3,
            "redirect_uris": ["http://127.0.0.1/callback"],
        },
    ).json()
    verifier = "v" * 43
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    request = {
        "response_type": "code",
        "client_id": made["client_id"],
        "redirect_uri": f"http://127.0.0.1:{assistant.server_port}/callback",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    begin = f"/oauth/authorize?{urlencode(request)}"
    size: Any = {"width": width, "height": 800}
    with a_window(browser, server, viewport=size, java_script_enabled=False) as page:
        page.goto(begin)
        for text in (shop["email"], shop["password"]):
            page.keyboard.press("Tab")
            page.keyboard.type(text)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="to your shop?").wait_for()
        assert page.get_by_label("Read only").is_checked()
        assert not page.get_by_label("Let it see who your buyers are").is_checked()
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        assert page.get_by_label("Read and change").is_checked()
        for key in ("Tab", "Tab", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url(f"http://127.0.0.1:{assistant.server_port}/callback?**")
        told = parse_qs(urlsplit(page.url).query)
    form = {
        "grant_type": "authorization_code",
        "code": told["code"][0],
        "client_id": made["client_id"],
        "code_verifier": verifier,
    }
    given = httpx.post(f"{server.url}/oauth/token", data=form).json()
    assert given["scope"] == "mcp:read mcp:write"
    with a_window(browser, server, viewport=size, color_scheme=scheme) as page:
        sign_in(page, shop)
        page.goto(begin)
        ratio, element = page.evaluate(CONTRAST)
        assert ratio >= 4.5, (ratio, element)
        assert page.evaluate(OVERFLOW) == 0
        if folder := os.environ.get("CARDSYNC_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/consent-{width}-{scheme}.png", full_page=True)
        well_made(page)
        page.goto("/settings/assistants")
        page.get_by_role("button", name="Test the connection").click()
        page.get_by_role("heading", name="The connection works").wait_for()
        # The assistant of the test has lost its access again.
        assert page.get_by_role("button", name="Save permissions").count() == 1
        assert page.get_by_text("cardsync self-test").count() == 0
        assert page.evaluate(OVERFLOW) == 0
        if folder := os.environ.get("CARDSYNC_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/assistants-{width}-{scheme}.png", full_page=True)
        well_made(page)


def well_made(page: Page) -> None:
    page.evaluate(AXE.read_text())
    assert page.evaluate("axe.run(document).then(found => found.violations)") == []


def test_a_passkey_is_made_and_signs_in_without_the_password(
    browser: Browser, server: Server, shop: dict[str, Any]
) -> None:
    """Chromium's own virtual device stands for a telephone or a security key. Browsers know no
    passkeys at an address in numbers.
    """
    url = server.url.replace("127.0.0.1", "localhost")
    context = browser.new_context(base_url=url)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    devtools = context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    device = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": device})
    sign_in(page, shop)
    page.goto("/settings/sign-in")
    page.get_by_label("Name").fill("Telephone")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_text("Passkey added.").wait_for()
    assert page.get_by_role("rowheader", name="Telephone").is_visible()
    page.goto("/account")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in?signed_out=here")
    page.goto("/sign-in?next=/cards")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{url}/cards")
    assert is_in(page)
    assert complaints == []
    # A device that does not know its user is refused, and the password's form stays.
    page.goto("/account")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in?signed_out=here")
    verified = {"authenticatorId": made["authenticatorId"], "isUserVerified": False}
    devtools.send("WebAuthn.setUserVerified", verified)
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_text("Passkey sign-in was canceled.").wait_for()
    assert page.get_by_label("Password").is_visible()
    context.close()
