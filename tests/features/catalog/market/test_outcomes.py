"""GET /api/recommendations/outcomes: what applied prices brought beside matched cards."""

from datetime import timedelta
from decimal import Decimal

from browsers import joined
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.holdout_draw import begin_of, window
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
        INSERT INTO proposal (seller_id, slot, family, kind, state, card_id, rule_id,
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
    return order


async def told(seller):
    answer = await seller.get(OUTCOMES)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_without_reviews_there_is_no_outcome(a_seller):
    seller = await a_seller()
    nothing = {"window_days": 30, "outcomes": [], "holdouts": [], "reviews": []}
    assert await told(seller) == nothing


async def test_young_decisions_wait_and_few_sales_say_nothing(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 4)
    await reviewed(seller, cards[1], "accepted", days=10)
    await reviewed(seller, cards[2], "auto_applied", days=40)
    await reviewed(seller, cards[3], "dismissed", days=41)
    await sold(seller, 2, 12, days=30)
    answer = await told(seller)
    by_kind, by_rule = answer["outcomes"]
    [one] = answer["reviews"]
    assert (one["state"], one["card_id"], one["product_name"]) == (
        "auto_applied",
        cards[2],
        "Card 2",
    )
    assert (one["current_price"], one["proposed_price"]) == ("10.00", "12.00")
    assert (one["sold"], one["net"], one["control_per_card"]) == (True, "10.11", "0.00")
    assert one["control_cards"] == 1
    assert (by_kind["kind"], by_kind["rule_id"]) == ("depth_raise", None)
    assert (by_rule["kind"], by_rule["rule_id"]) == (None, 7)
    assert (by_kind["accepted"], by_kind["auto_applied"], by_kind["waiting"]) == (1, 1, 1)
    assert (by_kind["cards"], by_kind["cards_sold"], by_kind["control_cards"]) == (1, 1, 1)
    # 12.00 less 13.25 % and 0.30.
    assert (by_kind["net_per_card"], by_kind["control_per_card"]) == ("10.11", "0.00")
    assert (by_kind["verdict"], by_kind["interval"]) == ("not_enough_sales", None)
    assert "Not enough sales" in by_kind["reason"]


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
    assert (by_kind["cards"], by_kind["control_cards"]) == (12, 10)
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


def days_of(part_ago):
    """The number of such thirty days of a hold-out, and how many days ago they began."""
    part = window(clock.now()) - part_ago
    return part, (clock.now() - begin_of(part)).days


async def drawn(seller, marketplace_ids, days, *, held, rule=7, part=600):
    """Cards that a rule's hold-out drew so many days ago."""
    await seller.service.sql(
        seller.id,
        """
        INSERT INTO price_decision (seller_id, kind, source_id, part, marketplace_id, price, asked,
                                    since)
        SELECT :seller, :kind, :rule, :part, id, 10, 12, :at
          FROM unnest(CAST(:ids AS bigint[])) AS of_cards (id)
        """,
        seller=seller.id,
        rule=rule,
        kind="held_out" if held else "twin",
        part=part,
        ids=list(marketplace_ids),
        at=clock.now() - timedelta(days=days),
    )


async def test_a_rules_hold_out_says_what_the_rule_brings(a_seller):
    seller = await a_seller()
    await stocked(seller, 61)
    part, began = days_of(2)
    await drawn(seller, range(1, 21), began, held=True, part=part)
    await drawn(seller, range(21, 41), began, held=False, part=part)
    await drawn(seller, range(41, 44), 3, held=True)
    for number in range(21, 36):
        await sold(seller, number, 12, days=began - 10)
    await sold(seller, 1, 10, days=began - 29)
    # Sales after the thirty days, and those of cards that nobody drew, count nowhere.
    await sold(seller, 2, 10, days=began - 30)
    await sold(seller, 60, 10, days=began - 10)
    [one] = (await told(seller))["holdouts"]
    assert (one["rule_id"], one["waiting"], one["cards"], one["held_cards"]) == (7, 3, 20, 20)
    assert (one["cards_sold"], one["held_sold"]) == (15, 1)
    # 12.00 nets 10.11 and 10.00 nets 8.375; three quarters and a twentieth of the cards sold.
    assert (one["net_per_card"], one["held_per_card"]) == ("7.5825", "0.4188")
    assert one["verdict"] == "more"
    low, high = (Decimal(end) for end in one["interval"])
    assert 0 < low < Decimal(one["difference_per_card"]) < high


async def test_a_small_hold_out_says_nothing(a_seller):
    seller = await a_seller()
    await stocked(seller, 20)
    await drawn(seller, range(1, 10), 40, held=True)
    await drawn(seller, range(10, 19), 40, held=False)
    [one] = (await told(seller))["holdouts"]
    assert (one["verdict"], one["interval"]) == ("not_enough_sales", None)
    assert (one["net_per_card"], one["held_per_card"]) == ("0.00", "0.00")
