"""`GET /api/network` and unmet demand: what the owner sees of the shop, and what is counted of callers
who found nothing.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic

from browsers import joined, signed_in
from cardsync.network import misses
from cardsync.network.limits import MISS_CALLERS, MISS_DAYS, MISSES_NOTED
from cardsync.platform import clock
from discovery_builder import a_card, change, find

PATH = "/api/network"


async def network(seller):
    answer = await seller.get(PATH)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def kept(service, count, tag):
    """Wait until so many misses of the tag's products are written."""
    sql = """
        SELECT m.* FROM network_miss m JOIN product p ON p.id = m.product_id
         WHERE p.product_name LIKE '%' || :tag || '%'
    """
    end = monotonic() + 10
    while True:
        rows = await service.sql(1, sql, tag=tag)
        if len(rows) >= count or monotonic() > end:
            return rows
        await asyncio.sleep(0.1)


async def test_the_owner_sees_what_a_buyer_sees(a_shop, catalog, tag, service):
    base, name = f"Base {tag}", f"Mew {tag}"
    await catalog(
        (name, base, "8/64", "Holofoil", 41), (f"{name} ex", base, "9/64", "Holofoil", 42)
    )
    shop = await a_shop(
        "Alpha",
        a_card(1, name, base, "8/64", price="12.50", quantity=2),
        a_card(2, name, base, "8/64", price="7", quantity=1, Condition="Damaged Holofoil"),
        a_card(3, f"{name} ex", base, "9/64", price="", quantity=5),
        postage_steps="0:1.27,12:3.20",
        listing_url_template="https://alpha.example/{marketplace_product_id}",
    )
    told = await network(shop)
    assert (told["seen"], told["hidden_because"]) == (True, [])
    assert told["consented_at"]
    assert told["published_at"]
    assert (told["printings"], told["copies"], told["store_name"]) == (1, 3, "Alpha")
    assert (told["in_stock"], told["shared"]) == (3, 2)
    assert told["kept_private"] == {
        "custom": 0, "private": 0, "without_price": 1, "other_language": 0,
    }  # fmt: skip
    assert told["postage"] == [
        {"value_from": "0.00", "postage": "1.27"},
        {"value_from": "12.00", "postage": "3.20"},
    ]
    names = ("condition", "price", "shipped", "quantity")
    shown = [tuple(card[name] for name in names) for card in told["shown"]]
    assert shown == [("NM", "12.50", "15.70", 2), ("DMG", "7.00", "8.27", 1)]
    [found] = await find(shop, {"name": name})
    # The link is the one that a buyer gets.
    assert {card["buy_url"] for card in told["shown"]} == {
        one["buy_url"] for one in found["availability"]["sellers"]
    }
    await change(service, shop, network_consent=False, plan="lapsed")
    told = await network(shop)
    assert (told["seen"], told["hidden_because"]) == (False, ["no_consent", "plan_ended"])
    assert told["consented_at"] is None


async def test_staff_is_refused(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    answer = await staff.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")


async def test_a_miss_counts_once_five_different_callers_had_it(
    a_seller, a_shop, catalog, tag, service
):
    base, name = f"Base {tag}", f"Mew {tag}"
    await catalog(
        (name, base, "8/64", "Holofoil", 41), (f"{name} ex", base, "9/64", "Holofoil", 42)
    )
    holder = await a_shop("Alpha", a_card(1, name, base, "8/64"), network_published=False)
    callers = [await a_seller() for _ in range(MISS_CALLERS)]

    async def unmet(seller):
        return [one for one in (await network(seller))["unmet"] if tag in one["name"]]

    for caller in callers[:-1]:
        for _ in range(3):
            await find(caller, {"name": name, "set": base}, {"name": "nobody " + tag})
    assert len(await kept(service, MISS_CALLERS - 1, tag)) == MISS_CALLERS - 1
    assert await unmet(callers[0]) == []
    body = {"cards": [{"name": name, "set": base}, {"name": f"{name} ex"}]}
    answer = await callers[-1].post("/api/discovery/basket", json=body)
    assert {one["reason"] for one in answer.json()["unavailable"]} == {"no_offer"}
    rows = await kept(service, MISS_CALLERS + 1, tag)
    # Nobody can be recognised, not even the same caller of two products.
    assert len({row["caller"] for row in rows}) == len(rows)
    [seen] = await unmet(callers[0])
    assert (seen["callers"], seen["held"], seen["number"]) == (MISS_CALLERS, False, "8/64")
    assert [one["held"] for one in await unmet(holder)] == [True]
    # As soon as somebody is seen to offer it, nothing is wanting.
    await change(service, holder, network_published=True)
    assert await unmet(callers[0]) == []


async def test_misses_are_written_by_several_processes_at_once_and_end(
    a_seller, catalog, tag, service
):
    base = f"Base {tag}"
    await catalog(*((f"Card {n} {tag}", base, str(n), "Holofoil") for n in range(5)))
    sql = "SELECT id FROM product WHERE set_name = :base"
    ids = [row["id"] for row in await service.sql(1, sql, base=base)]
    now = clock.now()
    writers = [misses.Misses(service.database, lambda: b"key") for _ in range(4)]
    for at, writer in enumerate(writers):
        writer.note(ids if at % 2 else ids[::-1], 7, now - timedelta(days=at))
    await asyncio.gather(*(writer.flush() for writer in writers))
    rows = await kept(service, len(ids), tag)
    assert len(rows) == len(ids)
    assert {row["asked_on"] for row in rows} == {now.date()}
    full = writers[0]
    full.note(range(10**6, 10**6 + MISSES_NOTED + 50), 7, now)
    assert len(full._noted) == MISSES_NOTED
    later = now + timedelta(days=MISS_DAYS + 1)
    assert await misses.drop_old(service.database, later) >= len(ids)
    assert await service.sql(1, "SELECT FROM network_miss") == []


FORM = {
    "was:network_consent": "false",
    "was:network_published": "false",
    "was:store_name": "",
    "was:listing_url_template": "",
    "was:postage_steps": "",
    "store_name": "",
    "listing_url_template": "",
}
HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


async def test_the_form_joins_the_network_and_leaves_it(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    page = (await browser.get("/network")).text
    assert "Turn on both options to show it." in page
    assert "Leave blank to use an estimate, as now:" in " ".join(page.split())
    assert "$4.99" in page
    joined_fields = {"network_consent": "true", "network_published": "true"}
    more = {"store_name": HOSTILE, "rate_from": ["0", "$12", ""], "rate": ["1.27", "3.20", ""]}
    answer = await browser.form("/network", **(FORM | joined_fields | more))
    assert answer.status_code == 303, answer.text
    told = await network(seller)
    assert (told["seen"], told["store_name"]) == (True, HOSTILE)
    page = (await browser.get("/network")).text
    assert "<b onclick" not in page
    assert 'value="1.27"' in page
    assert 'value="3.20"' in page
    assert "an estimate, as now" not in " ".join(page.split())
    assert "Sharing since" in page
    entries = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    assert any("network_consent=true" in str(entry) for entry in entries)
    # A second tab that shows the old state writes over nothing.
    stale = await browser.form("/network", **(FORM | {"store_name": "Other"}))
    assert stale.status_code == 409
    assert "Someone else changed this" in stale.text
    stands = {"was:postage_steps": "0:1.27,12:3.20"}
    unread = await browser.form("/network", rate_from="0", rate="a lot", **stands)
    assert unread.status_code == 422
    assert "Enter amounts like 1.27" in unread.text
    assert 'value="a lot"' in unread.text
    left = await browser.form("/network", **{"was:network_consent": "true"})
    assert left.status_code == 303
    assert (await network(seller))["hidden_because"] == ["no_consent"]


async def test_a_form_without_a_token_or_of_staff_is_refused(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    answer = await browser.http.post("/network", data=FORM | {"network_consent": "true"})
    assert answer.status_code == 403
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.get("/network")).status_code == 403
    assert (await staff.form("/network", **(FORM | {"network_consent": "true"}))).status_code == 403
    assert 'href="/network"' not in (await staff.get("/cards")).text
    assert (await network(seller))["seen"] is False


async def test_two_forms_at_once_leave_one_state(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    answers = await asyncio.gather(
        *(browser.form("/network", **(FORM | {"store_name": name})) for name in ("Alpha", "Beta"))
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert (await network(seller))["store_name"] in ("Alpha", "Beta")
