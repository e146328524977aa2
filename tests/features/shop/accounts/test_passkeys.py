"""Passkeys over HTTP, with a device of the tests' own."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from cardsync.platform import clock, errors
from cardsync.shop.accounts import challenges, passkeys
from passkeys_builder import Device

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


async def test_a_passkey_is_made_named_used_and_removed(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    assert (await owner.get("/api/passkeys")).json() == {"passkeys": []}
    device = Device()
    options = await device.options(owner)
    assert (options["rp"]["id"], options["user"]["name"]) == ("localhost", seller.email)
    assert options["authenticatorSelection"]["userVerification"] == "required"
    made = await device.send(owner, device.made(options["challenge"]), f" {HOSTILE} ")
    assert (made.status_code, made.json()["name"]) == (201, HOSTILE)
    again = await device.options(owner)
    assert [each["id"] for each in again["excludeCredentials"]]
    answer = await device.sign_in(seller.service)
    assert answer.status_code == 200, answer.text
    assert answer.json()["member"]["email"] == seller.email
    assert "cardsync_session" in answer.cookies
    [listed] = (await owner.get("/api/passkeys")).json()["passkeys"]
    assert listed["last_used_at"] is not None
    path = f"/api/passkeys/{listed['id']}"
    assert (await owner.send("DELETE", path)).json() == {"deleted": True}
    assert (await owner.send("DELETE", path)).status_code == 404
    gone = await device.sign_in(seller.service)
    assert (gone.status_code, gone.json()["code"]) == (401, "invalid_credentials")


async def test_a_challenge_is_good_once_for_its_member_and_for_five_minutes(a_seller, monkeypatch):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    device, other = Device(), Device()
    challenge = (await device.options(owner))["challenge"]
    assert (await device.send(bea, device.made(challenge))).status_code == 422
    assert (await device.send(owner, device.made(challenge))).status_code == 201
    used = await other.send(owner, other.made(challenge))
    assert (used.status_code, "already used" in used.json()["error"]) == (422, True)
    http = seller.service.client()
    challenge = await device.challenge(http)
    assert (await device.sign_in(seller.service, challenge)).status_code == 200
    assert (await device.sign_in(seller.service, challenge)).status_code == 401
    # One for a new passkey signs nobody in.
    mine = (await device.options(owner))["challenge"]
    assert (await device.sign_in(seller.service, mine)).status_code == 401
    late = await device.challenge(http)
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + challenges.IS_GOOD)
    assert (await device.sign_in(seller.service, late)).status_code == 401
    assert await challenges.drop_past(seller.service.database, clock.now()) >= 1


async def test_a_refused_answer_uses_the_challenge_up(a_seller):
    seller = await a_seller()
    owner, device = await signed_in(seller), Device()
    await device.register(owner)
    challenge = await device.challenge(seller.service.client())
    impostor = Device(id=device.id)
    assert (await impostor.sign_in(seller.service, challenge)).status_code == 401
    assert (await device.sign_in(seller.service, challenge)).status_code == 401
    assert (await device.sign_in(seller.service)).status_code == 200
    elsewhere, other = Device(origin="https://elsewhere.example"), Device()
    for refused, name in ((elsewhere, "phone"), (other, " ")):
        challenge = (await other.options(owner))["challenge"]
        answer = await refused.send(owner, refused.made(challenge), name)
        assert answer.status_code == 422
        again = await other.send(owner, other.made(challenge))
        assert (again.status_code, "already used" in again.json()["error"]) == (422, True)


async def test_a_count_that_does_not_grow_is_refused(a_seller):
    seller = await a_seller()
    owner, device = await signed_in(seller), Device()
    await device.register(owner)
    assert (await device.sign_in(seller.service)).status_code == 200
    copy = Device(id=device.id, key=device.key, count=device.count - 1)
    assert (await copy.sign_in(seller.service)).status_code == 401
    assert (await device.sign_in(seller.service)).status_code == 200


async def test_of_two_who_bring_one_answer_at_once_one_is_let_in(a_seller):
    seller = await a_seller()
    owner, device = await signed_in(seller), Device()
    await device.register(owner)
    http = seller.service.client()
    signed = device.signed(await device.challenge(http))
    answers = await asyncio.gather(
        *(device.bring(seller.service.client(), signed) for _ in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 401]


@pytest.mark.parametrize(
    "wrong",
    [{"origin": "https://elsewhere.example"}, {"host": "elsewhere.example"}, {"verifies": False}],
    ids=str,
)
async def test_another_site_and_an_unverified_user_are_refused(a_seller, wrong):
    seller = await a_seller()
    owner, device = await signed_in(seller), Device()
    await device.register(owner)
    challenge = (await device.options(owner))["challenge"]
    worse = Device(**wrong)
    made = worse.made(challenge)
    worse.host = device.host
    refused = await worse.send(owner, made)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")
    worse = Device(**wrong, id=device.id, key=device.key, count=9)
    signed = worse.signed(await device.challenge(seller.service.client()))
    assert (await device.bring(seller.service.client(), signed)).status_code == 401


@pytest.mark.parametrize(
    "credential",
    [
        {},
        {"id": "x"},
        {"id": 1, "rawId": [], "response": {}},
        {"response": {"clientDataJSON": "é"}},
    ],
    ids=str,
)
async def test_what_is_no_credential_is_refused_in_words(a_seller, credential):
    owner, device = await signed_in(await a_seller()), Device()
    made = await device.send(owner, credential)
    assert (made.status_code, made.json()["error"][:11]) == (422, "credential:")
    http = owner.service.client()
    assert (await device.bring(http, credential)).status_code == 401


async def test_who_is_suspended_or_removed_is_not_let_in(a_seller):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    mine, hers = Device(), Device()
    await mine.register(owner)
    await hers.register(bea)
    await owner.send("DELETE", f"/api/members/{bea.member_id}")
    assert (await hers.sign_in(seller.service)).status_code == 401
    await seller.set(suspended=True)
    assert (await mine.sign_in(seller.service)).json()["code"] == "account_suspended"


async def test_nobody_sees_or_removes_the_passkey_of_another(a_seller):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    made = (await Device().register(bea)).json()["id"]
    assert (await owner.get("/api/passkeys")).json() == {"passkeys": []}
    assert (await owner.send("DELETE", f"/api/passkeys/{made}")).status_code == 404
    stranger = await signed_in(await a_seller())
    assert (await stranger.send("DELETE", f"/api/passkeys/{made}")).status_code == 404


async def test_the_page_names_them_and_removes_them_by_a_form(a_seller):
    seller = await a_seller()
    browser = await joined(seller, f"staff-{seller.email}")
    local = {"Host": "localhost:8000"}
    page = await browser.get("/settings/sign-in", headers=local)
    assert "No passkeys yet" in page.text
    assert "data-passkey" in page.text
    made = (await Device().register(browser, HOSTILE)).json()["id"]
    page = await browser.get("/settings/sign-in", headers=local)
    assert "<b onclick" not in page.text
    assert "never" in page.text
    path = f"/settings/sign-in/{made}/remove"
    assert (await browser.http.post(path)).status_code == 403
    token = {"csrf_token": browser.session["csrf_token"]}
    assert (await browser.http.post(path, data=token)).status_code == 303
    assert (await browser.get("/api/passkeys")).json() == {"passkeys": []}
    numbers = await browser.get("/settings/sign-in", headers={"Host": "127.0.0.1:8000"})
    assert ("work with an IP address" in numbers.text, "data-passkey" in numbers.text) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("public_url", "host", "origin", "name"),
    [
        ("https://shop.example", "shop.example", "https://shop.example", "shop.example"),
        ("https://shop.example:8443/", "evil.example", "https://shop.example:8443", "shop.example"),
        ("https://shop.example", None, "https://shop.example", "shop.example"),
        (None, "localhost:8000", "http://localhost:8000", "localhost"),
        (None, "127.0.0.1:8000", None, None),
        (None, "evil.example", None, None),
        (None, "[::1", None, None),
    ],
)
def test_the_place_is_that_of_the_public_url_or_of_a_believed_name(
    service, public_url, host, origin, name
):
    told = {"public_url": public_url, "bind": "127.0.0.1:8000"}
    settings = service.settings.model_copy(update=told)
    if origin is None:
        with pytest.raises(errors.InvalidPayload):
            passkeys.place_of(settings, host)
    else:
        assert passkeys.place_of(settings, host) == (origin, name)


async def test_challenges_do_not_outlive_their_time(service):
    place = passkeys.Place("http://localhost", "localhost")
    now = clock.now() - timedelta(hours=1)
    await passkeys.begin_sign_in(service.database, place, now)
    assert await challenges.drop_past(service.database, clock.now()) == 1
