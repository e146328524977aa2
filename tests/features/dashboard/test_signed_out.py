"""A session that ended while somebody typed: a form's answer has what was typed and the way back, a
script's request gets no page, and a link leads to the sign-in page and back.
"""

from __future__ import annotations

from browsers import signed_in
from builders import a_csv, a_row


async def ended(a_seller):
    """A browser whose session has ended on another device."""
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    browser = await signed_in(seller)
    other = await signed_in(seller)
    await other.sign_out(everywhere="true")
    assert not await browser.is_in()
    return browser


async def test_a_form_without_a_script_shows_what_was_typed_and_leads_back(a_seller):
    browser = await ended(a_seller)
    typed = {"name": "<b>Foils</b>", "new_password": "secret words", "text": "two\nlines"}
    answer = await browser.http.post(
        "/pricing/rules/new",
        data={"csrf_token": browser.session["csrf_token"], **typed},
        headers={"Referer": "http://server.invalid/pricing/rules/new?face=text"},
    )
    assert answer.status_code == 401
    page = answer.text
    assert "You were signed out" in page
    assert "&lt;b&gt;Foils&lt;/b&gt;" in page
    assert "two\nlines" in page
    assert "secret words" not in page
    assert browser.session["csrf_token"] not in page
    assert 'href="/sign-in?next=/pricing/rules/new%3Fface%3Dtext"' in page


async def test_a_script_gets_no_page_to_put_into_a_part(a_seller):
    browser = await ended(a_seller)
    for answer in (
        await browser.http.get("/cards", headers={"HX-Request": "true"}),
        await browser.http.post("/pricing/draft", headers={"HX-Request": "true"}, data={"a": "b"}),
    ):
        assert (answer.status_code, answer.headers["hx-reswap"]) == (401, "none")
        assert answer.text == ""


async def test_a_link_leads_to_the_sign_in_page_and_back(a_seller):
    browser = await ended(a_seller)
    answer = await browser.get("/pricing/pins?page=2")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=/pricing/pins%3Fpage%3D2"


async def test_a_form_that_is_no_form_is_told_too(a_seller):
    browser = await ended(a_seller)
    answer = await browser.http.post("/cards/1/pin", content=b"\xff\xfe", headers={
        "Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
    assert (answer.status_code, "You were signed out" in answer.text) == (401, True)
