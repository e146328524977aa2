"""GET /api/recommendations/outcomes: what applied prices brought beside matched cards."""

from datetime import timedelta

from browsers import joined
from builders import a_csv, a_row
from cardsync import clock
from orders_builder import an_item, an_order

OUTCOMES = "/api/recommendations/outcomes"


async def stocked(seller, count):
    await seller.import_csv(
        a_csv(*(a_row(number, name=f"Card {number}", price="10.00") for number in range(1, count)))
    )
    cards = (await seller.get("/api/cards", params={"per_page": 200})).json()["cards"]
    return {card["marketplace_id"]: card["id"] for card in cards}


async def reviewed(seller, card_id, state, days, kind="depth_raise"):
    """A review of so many days ago."""
    at = clock.now() - timedelta(days=days)
    await seller.service.sql(
        seller.id,
        """
        INSERT INTO recommendation (seller_id, slot, family, kind, state, card_id, rule_id,
            current_price, proposed_price, expected_value, worth, confidence, evidence_key,
            revision, created_at, expires_at, settled_at)
        VALUES (:seller, :slot, 'price', :kind, :state, :card, 7, 10, 12, 1, 10000, 'low', 'x',
            :at, :at, :at, :at)
        """,
        seller=seller.id,
        slot=f"price:{card_id}",
        kind=kind,
        state=state,
        card=card_id,
        at=at,
    )


async def sold(seller, marketplace_id, price, days):
    day = (clock.now() - timedelta(days=days)).date()
    order = await an_order(seller, order_date=day, status="Completed - Paid")
    await an_item(seller, order, sku_id=marketplace_id, unit_price=price)


async def told(seller):
    answer = await seller.get(OUTCOMES)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_without_reviews_there_is_no_outcome(a_seller):
    seller = await a_seller()
    assert await told(seller) == {"window_days": 30, "outcomes": []}


async def test_young_decisions_wait_and_few_sales_say_nothing(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 4)
    await reviewed(seller, cards[1], "accepted", days=10)
    await reviewed(seller, cards[2], "auto_applied", days=40)
    await reviewed(seller, cards[3], "dismissed", days=41)
    await sold(seller, 2, 12, days=30)
    by_kind, by_rule = (await told(seller))["outcomes"]
    assert (by_kind["kind"], by_kind["rule_id"]) == ("depth_raise", None)
    assert (by_rule["kind"], by_rule["rule_id"]) == (None, 7)
    assert (by_kind["accepted"], by_kind["auto_applied"], by_kind["waiting"]) == (1, 1, 1)
    assert (by_kind["cards"], by_kind["cards_sold"], by_kind["control_cards"]) == (1, 1, 1)
    # 12.00 less 13.25 % and 0.30.
    assert (by_kind["net_per_card"], by_kind["control_per_card"]) == ("10.11", "0.00")
    assert (by_kind["verdict"], by_kind["interval"]) == ("not_enough_sales", None)
    assert "not enough sales" in by_kind["reason"]


async def test_applied_prices_that_bring_more_are_told_with_an_interval(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 25)
    for number in range(1, 13):
        await reviewed(seller, cards[number], "accepted", days=40)
        await sold(seller, number, 12 + number % 3, days=39)
        # A sale before the decision, and one after thirty days, count for nothing.
        await sold(seller, number, 90, days=41)
        await sold(seller, number, 90, days=9)
    for number in range(13, 25):
        await reviewed(seller, cards[number], "expired", days=42)
        await sold(seller, number, 10, days=20)
    by_kind = (await told(seller))["outcomes"][0]
    assert (by_kind["cards"], by_kind["control_cards"]) == (12, 120)
    assert by_kind["verdict"] == "more"
    assert by_kind["control_per_card"] == "8.375"
    low, high = by_kind["interval"]
    assert 0 < float(low) < float(by_kind["difference_per_card"]) < float(high)


async def test_cards_of_another_time_or_kind_are_no_match(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 4)
    await reviewed(seller, cards[1], "accepted", days=40)
    await reviewed(seller, cards[2], "expired", days=60)
    await reviewed(seller, cards[3], "expired", days=40, kind="sales_anchor")
    by_kind = (await told(seller))["outcomes"][0]
    assert (by_kind["cards"], by_kind["control_cards"]) == (0, 0)
    assert by_kind["net_per_card"] is None


async def test_outcomes_are_the_owners(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.id}@example.invalid")
    answer = await staff.get(OUTCOMES)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
