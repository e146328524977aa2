"""Shared parts of the tests of plans: a plain shop, plans over HTTP, permissions."""

from datetime import timedelta

from browsers import signed_in
from builders import a_csv, a_row, a_shop
from cardsync.platform import clock

PLANS = "/api/v1/agent/plans"
PERMISSIONS = f"{PLANS}/permissions"
PRICING = "/api/pricing"


async def a_plain_shop(a_seller, *rows, adjust_bp=0, **options):
    """A shop whose one rule asks the market price: ten cards of 10.00 by default."""
    rows = rows or [a_row(n, market="10.00", price="10.00", low="") for n in range(1, 11)]
    seller = await a_shop(a_seller, *rows, **options)
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    body = {"never_lower": False, "adjust_bp": adjust_bp, "fallback_sources": [], "cap": None}
    answer = await seller.http.patch(f"/api/pricing/rules/{rule['id']}", json=body)
    assert answer.status_code == 200, answer.text
    return seller, rule["id"]


def changes(*changes, **plan):
    return {"actions": [{"type": "pricing.change_set", "changes": list(changes)}], **plan}


def lowered(rule_id, bp, **plan):
    return changes({"op": "update", "rule_id": rule_id, "set": {"adjust_bp": -bp}}, **plan)


async def planned(seller, body, status=201):
    answer = await seller.post(PLANS, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def rule_of(seller, rule_id):
    return (await seller.get(f"/api/pricing/rules/{rule_id}")).json()


async def allow(seller, mode, credential="key", kind="pricing.change_set"):
    owner = await signed_in(seller)
    answer = await owner.send("PATCH", PERMISSIONS, json={credential: {kind: mode}})
    assert answer.status_code == 200, answer.text
    return owner


def a_sale(bp, *, starts=0, days=2, **fields):
    now = clock.now()
    return {
        "name": "A sale",
        "adjust_bp": bp,
        "starts_at": clock.rfc3339(now + timedelta(days=starts)),
        "ends_at": clock.rfc3339(now + timedelta(days=starts + days)),
        **fields,
    }


async def a_shop_under_limits(a_limited_seller, *rows, budget=1000):
    """Ten cards of 10.00 at the market's price, whose rule the owner made."""
    rows = rows or [a_row(n, market="10.00", price="10.00", low="") for n in range(1, 11)]
    seller = await a_limited_seller(loss_budget=budget)
    await seller.import_csv(a_csv(*rows))
    owner = await signed_in(seller)
    [rule] = (await seller.get(f"{PRICING}/rules")).json()["rules"]
    body = {"never_lower": False, "adjust_bp": 0, "fallback_sources": [], "cap": None}
    answer = await owner.send(
        "PATCH", f"{PRICING}/rules/{rule['id']}", json=body | {"confirm": True}
    )
    assert answer.status_code == 200, answer.text
    return seller, owner, rule["id"]


def needs_review(answer):
    assert answer.status_code == 409, answer.text
    body = answer.json()
    assert body["code"] == "needs_review"
    assert body.keys() == {
        "error",
        "code",
        "proposal_id",
        "confirm_url",
        "risk",
        "limit",
        "cards_affected",
        "listed_value_change",
    }
    return body
