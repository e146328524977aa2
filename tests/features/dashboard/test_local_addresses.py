"""Links, addresses and commands to hand over: each can be copied, and says where an address leads no
farther than this computer.
"""

import re

import pytest

from browsers import signed_in
from builders import an_order
from cardsync.assistant.connect import CLIENTS
from notices_builder import of_service, reaching


@pytest.fixture
async def public(service, alive):
    async with reaching(service, alive, public_url="https://cards.fernhill.example") as public:
        yield public


def copied(page):
    return re.findall(r'<div class="code"><pre tabindex="0"><code>(.*?)</code>', page, re.DOTALL)


async def test_an_invitation_says_its_end_and_the_form_is_empty_again(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1", status="Ready to Ship")])
    owner = await signed_in(seller)
    badge = re.compile(r'<span class="badge due">\s*1<')
    assert badge.search((await owner.get("/settings/people")).text)
    email = f"bea-{seller.email}"
    for _ in range(2):
        page = (await owner.form("/settings/people", email=email, role="staff")).text
        [link] = copied(page)
        assert link.startswith("http://127.0.0.1:8000/invitations/")
        assert "expires in 7 days" in page
        assert f"send it to {email}" in page
        assert "opens only on this computer" in page
        assert 'name="email" type="email" value=""' in page
        assert badge.search(page)
    page = (await owner.form(f"/settings/people/{owner.member_id}/link")).text
    assert "expires in 1 day." in page


async def test_a_public_address_needs_no_warning(a_seller, public):
    seller = of_service(await a_seller(), public)
    owner = await signed_in(seller)
    page = (await owner.form("/settings/people", email=f"b-{seller.email}", role="staff")).text
    assert copied(page)[0].startswith("https://cards.fernhill.example/invitations/")
    for path in ("/settings/assistants", "/settings/assistants/connect/claude"):
        page += (await owner.get(path)).text
    assert "Only apps" not in page
    assert "opens only" not in page


async def test_what_an_assistant_on_the_web_cannot_reach_is_said(a_seller):
    owner = await signed_in(await a_seller())
    page = (await owner.get("/settings/assistants")).text
    assert copied(page) == ["http://127.0.0.1:8000/mcp"]
    assert "Only apps on this computer can connect." in page
    for client in CLIENTS:
        page = (await owner.get(f"/settings/assistants/connect/{client.key}")).text
        [lines] = copied(page)
        assert max(map(len, lines.splitlines())) < 90
        assert ("Only apps on this computer" in page) == client.remote, client.key
