"""/.well-known/security.txt, where the operator named a contact."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError

from cardsync.asgi import create_app
from cardsync.platform import clock
from cardsync.platform.settings import Settings
from cardsync.web.security_txt import PATH


async def test_it_names_the_contact_and_ends_by_the_clock(service, alive):
    named = service.settings.model_copy(update={"security_contact": "mailto:holes@shop.example"})
    app = create_app(named)
    async with alive(app), replace(service, settings=named, app=app).client() as http:
        answer = await http.get(PATH)
    assert answer.headers["Content-Type"].startswith("text/plain")
    told = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert told["Contact"] == "mailto:holes@shop.example"
    assert told["Canonical"] == f"{named.origin}{PATH}"
    left = clock.read_moment(told["Expires"]) - clock.now()
    assert timedelta(days=29) < left <= timedelta(days=30)


async def test_without_a_contact_there_is_none(service):
    async with service.client() as http:
        assert (await http.get(PATH)).status_code == 404


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("holes@shop.example", "mailto:holes@shop.example"),
        ("mailto:holes@shop.example", "mailto:holes@shop.example"),
        ("https://shop.example/report", "https://shop.example/report"),
        ("", None),
    ],
)
def test_a_contact_is_an_address_or_a_page(given, read):
    assert Settings(security_contact=given).security_contact == read


@pytest.mark.parametrize("given", ["nobody", "http://shop.example", "a@b\nContact: evil"])
def test_anything_else_is_refused(given):
    with pytest.raises(ValidationError, match="security@example"):
        Settings(security_contact=given)
