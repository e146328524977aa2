"""A member's own name, address and password: changed on the page and over HTTP, and by nobody who
merely holds the session.
"""

import pytest

from browsers import A_PASSWORD, joined, reset, signed_in
from notices_builder import a_mail_server, calls, of_service, reaching, sent

NEW = "a new phrase of words"


async def change(browser, **body):
    return await browser.send("PATCH", "/api/members/me", json=body)


async def can_sign_in(seller, email, password):
    async with seller.service.client() as http:
        answer = await http.post("/api/session", json={"email": email, "password": password})
    return answer.status_code == 200


async def test_a_new_password_ends_the_other_sessions_and_links(a_seller):
    seller = await a_seller()
    browser, other = await signed_in(seller), await signed_in(seller)
    link = await reset(seller, browser.member_id)
    for present in (None, "a guess"):
        answer = await change(browser, current_password=present, new_password=NEW)
        assert answer.status_code == 422
        assert "present password" in answer.json()["error"]
    assert await other.is_in()
    answer = await change(browser, current_password=seller.password, new_password="short")
    assert answer.json()["error"].startswith("password: use 8")
    answer = await change(browser, current_password=seller.password, new_password=NEW)
    assert answer.status_code == 200, answer.text
    assert answer.json()["changed"] == ["password"]
    assert (await browser.is_in(), await other.is_in()) == (True, False)
    assert await can_sign_in(seller, seller.email, NEW)
    assert not await can_sign_in(seller, seller.email, seller.password)
    async with seller.service.client() as http:
        joins = await http.post(f"/api/invitations/{link}", json={"password": A_PASSWORD})
    assert joins.status_code == 404


async def test_a_name_needs_no_password_and_an_address_is_one_persons(a_seller):
    seller, neighbor = await a_seller(), await a_seller()
    bea = await joined(seller, f"bea-{seller.email}")
    answer = await change(bea, name="  Bea   Smith ")
    assert answer.json()["member"]["name"] == "Bea Smith"
    assert answer.json()["changed"] == ["name"]
    assert (await change(bea, name="Bea Smith")).json()["changed"] == []
    new = f"new-{seller.email}"
    assert (await change(bea, email=new)).status_code == 422
    for taken in (seller.email.upper(), neighbor.email):
        answer = await change(bea, email=taken, current_password=A_PASSWORD)
        assert answer.status_code == 422
        assert answer.json()["error"] == "email: another account has this address"
    answer = await change(bea, email="nowhere", current_password=A_PASSWORD)
    assert answer.status_code == 422
    answer = await change(bea, email=new, current_password=A_PASSWORD)
    assert answer.json()["member"]["email"] == new
    assert await can_sign_in(seller, new, A_PASSWORD)
    assert not await can_sign_in(seller, f"bea-{seller.email}", A_PASSWORD)
    owner = await signed_in(seller)
    feed = (await owner.get("/activity")).text
    assert "changed their email" in feed
    assert new not in feed


async def test_the_page_keeps_what_was_typed_and_says_what_is_wrong(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    page = (await browser.get("/account")).text
    assert "Change password" in page
    typed = {"name": "Sam", "email": f"new-{seller.email}"}
    answer = await browser.form("/account/details", **typed, current_password="a guess")
    assert answer.status_code == 422
    assert typed["email"] in answer.text
    assert "This is not your present password." in answer.text
    answer = await browser.form("/account/details", **typed, current_password=seller.password)
    assert answer.status_code == 303
    done = (await browser.get(answer.headers["Location"])).text
    assert "Name changed." in done
    assert "Email changed." in done
    answer = await browser.form(
        "/account/password", current_password=seller.password, new_password="short"
    )
    assert answer.status_code == 422
    assert "Use 8 to" in answer.text
    answer = await browser.form(
        "/account/password", current_password=seller.password, new_password=NEW
    )
    assert answer.status_code == 303
    assert await can_sign_in(seller, typed["email"], NEW)


async def test_guesses_at_the_present_password_are_slowed(a_seller, limited):
    seller = of_service(await a_seller(), limited)
    browser = await signed_in(seller)
    answers = [
        (await change(browser, current_password=f"guess {n}", new_password=NEW)).status_code
        for n in range(30)
    ]
    assert answers[0] == 422
    assert answers[-1] == 429


@pytest.fixture
async def limited(service, alive):
    async with reaching(service, alive, rate_limit_sign_in="10/min:10") as limited:
        yield limited


async def test_the_address_before_gets_a_letter_whatever_was_chosen(a_seller, service, alive):
    async with a_mail_server() as box:
        url = f"smtp://127.0.0.1:{box.port}"
        settings = {"mail_url": url, "mail_from": "Cards <notices@shop.example>"}
        async with reaching(service, alive, **settings) as mailing:
            seller = of_service(await a_seller(ship_within_days=30), mailing)
            await calls(seller)
            browser = await signed_in(seller)
            stop = await browser.send("PATCH", "/api/notices/choices", json={"stopped": True})
            assert stop.status_code == 200, stop.text
            new = f"new-{seller.email}"
            await change(browser, email=new, current_password=seller.password)
            await sent(seller, 2)
            [mail] = box.of(seller.email)
            assert "Your email was changed." in mail.get_content()
            assert box.of(new) == []
