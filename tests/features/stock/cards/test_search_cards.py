"""GET /api/cards: what searches find, what a row shows, filters, orders and pages; GET
/api/cards/{id} with its history.
"""

import json
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cards_builder import a_list, a_place, card_ids, found, search
from cardsync.platform import clock
from cardsync.platform.database import bound_text
from orders_builder import an_item, an_order, change_order

ROWS = [
    a_row(1, name="Lightning Bolt", set="Magic 2010", number="146", rarity="C", market="2.00",
          price="1.50"),
    a_row(2, name="Urza's Tower", set="Dominaria United", number="12a", rarity="U",
          condition="Lightly Played Foil", price="9.00", market="8.50"),
    a_row(3, line="Pokemon", name=(
        "Pokémon Center (Staff) [Prerelease]"
    ), set="Base Set (Shadowless)", number="006/165", rarity="Holo Rare",
    condition="Damaged 1st Edition Holofoil", quantity=5),
    a_row(4, line="Pokemon Japan", name="ピカチュウ (No Rarity)", number="6/102",
          condition="Near Mint - Japanese", price="", market=""),
    a_row(5, name="100% Pure_Luck", set="Été", number="TG05", rarity="", condition="Unopened",
          quantity=3),
    a_row(6, name='Erase "Me"', number="TG10", condition="unheard of"),
    a_row(7, name="Niv-Mizzet, Parun", number="", condition="Moderately Played"),
    a_row(8, name="Gone Bolt", quantity=0),
]  # fmt: skip


@pytest.fixture(scope="module")
async def seller(service):
    from builders import SellerBuilder

    seller = await SellerBuilder(service)(lines=["magic", "pokemon", "pokemon_japan"])
    await seller.import_csv(a_csv(*ROWS))
    ids = await card_ids(seller)
    await a_list(seller, "My Binder", ids[1], ids[3], ids[8], slug="binder")
    await a_place(seller, ids[1], 3, 12)
    await a_place(seller, ids[3], 12, 1, 2)
    await a_place(seller, ids[3], 3, 2, 1)
    await a_place(seller, ids[5], 2, 1, 4)
    await service.sql(
        seller.id,
        "UPDATE card SET target_price = 8 WHERE seller_id = :s AND id = :id",
        s=seller.id,
        id=ids[2],
    )
    return seller


FINDS = [
    ("", [1, 2, 3, 4, 5, 6, 7]),
    ("bolt", [1]),
    ("BOL light", [1]),
    ("olt", []),
    ("name:olt", [1]),
    ("urzas", [2]),
    ("urza's", [2]),
    ('"urza\'s t"', [2]),
    ("pokemon", [3]),
    ("Pokémon", [3]),
    ("ピカ", [4]),
    ("%", [5]),
    ("_", [5]),
    ('"100% pure_"', [5]),
    (r'"\"me\""', [6]),
    ("Niv-Mizzet", [7]),
    ("mizzet niv", [7]),
    ("-bolt", [2, 3, 4, 5, 6, 7]),
    ("bolt or tower", [1, 2]),
    ("set:dominaria -urza", [4, 6, 7]),
    ('set="Base set (shadowless)"', [3]),
    ('s:"ete"', [5]),
    ("rarity:c", [1, 4, 6, 7]),
    ('r:"holo rare"', [3]),
    ("r!=c", [2, 3]),
    ("cn:6", [3, 4]),
    ("cn:6/165", [3]),
    ("cn:tg5", [5]),
    ("cn>=12", [1, 2]),
    ("cn:1..12", [2, 3, 4]),
    ("game:pokemon", [3]),
    ("pl:pokemon_japan|magic -pokemon cond:NM", [1, 4]),
    ("cond<=LP", [1, 2, 4]),
    ("cond>LP", [3, 7]),
    ("cond!=NM", [2, 3, 5, 7]),
    ("cond:U", [5]),
    ("f:foil", [2]),
    ("f:1st", [3]),
    ("f:holo", [3]),
    ("lang:ja", [4]),
    ("lang:Japanese", [4]),
    ("v:staff", [3]),
    ("v:prerelease", [3]),
    ("v:shadowless", [3]),
    ("v:No Rarity", [4]),
    ("is:stamped", [3]),
    ("price>5", [2]),
    ("-price>5", [1, 3, 4, 5, 6, 7]),
    ("price!=9", [1, 3, 5, 6, 7]),
    ("price:1.25..", [1, 2]),
    ("market<=2 price>1", [1]),
    ("cost!=1", []),
    ("qty>=3", [3, 5]),
    ("qty:2..5", [3, 5]),
    ("unshelved>=1", [2, 3, 4, 6, 7]),
    ("change<0", [2]),
    ("age>1", []),
    ("age:0 bolt", [1]),
    ("list:binder", [1, 3]),
    ('list:"my BINDER"', [1, 3]),
    ("list:binder is:gone", [8]),
    ("list:binder or is:gone", [1, 3, 8]),
    ("box:3", [1, 3]),
    ("box!=3", [5]),
    ("loc:3-12", [1]),
    ("is:unshelved", [2, 4, 6, 7]),
    ("is:location-drift", [5]),
    ("is:gone", [8]),
    ("is:active bolt", [1]),
    ("is:unpriced", [4]),
    ("not:priced", [4]),
    ("is:underpriced", [1, 3, 5, 6, 7]),
    ("is:overpriced", [2]),
    ("is:sealed", [5]),
    ("is:foil", [2, 3]),
    ("is:review", [6]),
    ("is:custom", []),
    ("is:pinned or is:held", []),
    ("has:list", [1, 3]),
    ("has:location -has:list", [5]),
    ("has:photo", []),
    ("sku:2|4", [2, 4]),
]  # fmt: skip


@pytest.mark.night
@pytest.mark.parametrize(("text", "ids"), FINDS)
async def test_a_search_finds(seller, text, ids):
    assert await found(seller, text) == ids


@pytest.mark.parametrize(
    ("text", "offset", "told"),
    [
        ("bolt prise>5", 5, "price"),
        ("a list:bindr", 2, "binder"),
        ('list:"binder"', 0, "my binder"),
        ("rule:nobody", 0, "rule"),
        ("game:pokemn", 0, "pokemon"),
        ("(a", 0, ")"),
    ],
)
async def test_what_cannot_be_read_finds_nothing_and_is_told(seller, text, offset, told):
    page = await search(seller, text)
    assert (page["cards"], page["total"]) == ([], 0)
    [problem] = page["query_errors"]
    assert problem["offset"] == offset
    assert told in problem["message"]


async def test_a_row_tells_everything(seller):
    ids = await card_ids(seller)
    [card] = (await search(seller, "pokemon"))["cards"]
    assert card.pop("updated_at").endswith("Z")
    assert card.pop("product_id") > 0
    [entry] = card.pop("lists")
    assert (entry["slug"], entry["name"]) == ("binder", "My Binder")
    assert card == {
        "id": ids[3], "marketplace_id": 3, "marketplace_product_id": None, "product_name": (
            "Pokémon Center (Staff) [Prerelease]"
        ),
        "set_name": "Base Set (Shadowless)", "number": "006/165", "game": "pokemon",
        "product_line": "pokemon", "condition": "DMG",
        "condition_label": "Damaged 1st Edition Holofoil", "printing": "1st Edition Holofoil",
        "language": "English",
        "rarity": "Holo Rare", "quantity": 5, "price": "1.00", "target_price": "1.19",
        "pinned_price": None, "market_price": "1.20", "low_price": "1.00",
        "low_price_with_shipping": "2.31", "direct_low": None, "status": "active", "custom": False,
        "contribution": None, "gate_hold": None, "location_code": "3-2",
        "locations": [{"box": 3, "slot": 2, "code": "3-2", "quantity": 1},
                      {"box": 12, "slot": 1, "code": "12-1", "quantity": 2}],
        "unshelved_quantity": 2,
    }  # fmt: skip


async def test_filters_narrow(seller):
    ids = await card_ids(seller)
    assert await found(seller, "", game="Pokemon Japan") == [4]
    assert await found(seller, "", product_line="pokemon") == [3]
    assert await found(seller, "", game="Pokémon") == await found(seller, "game:Pokémon") == [3]
    assert await found(seller, "", game="nothing of ours") == []
    assert await found(seller, "bolt", status="all") == [1, 8]
    assert await found(seller, "bolt", status="gone") == [8]
    assert await found(seller, "", selected_ids=f"{ids[1]},{ids[8]}, {ids[2]}") == [1, 2]
    for malformed in ("", f"{ids[1]},", f"{ids[1]},x", "-1", "1.0", f"{ids[1]};{ids[2]}"):
        assert await found(seller, "", selected_ids=malformed) == []


@pytest.mark.parametrize("given", [{"status": "sold"}, {"sort": "colour"}, {"direction": "up"}])
async def test_what_is_no_choice_is_refused(seller, given):
    answer = await seller.get("/api/cards", params=given)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert next(iter(given)) in answer.json()["error"]


# Numbers are parted by what they begin with: 6/102 and 006/165 are one, letters come behind all
# of them.
@pytest.mark.parametrize(
    ("sort", "rising", "falling"),
    [
        ("name", [5, 6, 1, 7, 3, 2, 4], [4, 2, 3, 7, 1, 6, 5]),
        ("number", [3, 4, 2, 1, 5, 6, 7], [1, 2, 4, 3, 6, 5, 7]),
        ("price", [3, 5, 6, 7, 1, 2, 4], [2, 1, 7, 6, 5, 3, 4]),
        ("quantity", [1, 2, 4, 6, 7, 5, 3], [3, 5, 7, 6, 4, 2, 1]),
        ("location", [5, 3, 1, 2, 4, 6, 7], [1, 3, 5, 7, 6, 4, 2]),
    ],
)
async def test_cards_are_ordered_and_those_without_the_value_are_last(
    seller, sort, rising, falling
):
    for direction, expected in (("asc", rising), ("desc", falling)):
        page = await search(seller, "", sort=sort, direction=direction)
        assert [card["marketplace_id"] for card in page["cards"]] == expected


@pytest.mark.parametrize("sort", ["set", "target", "updated"])
async def test_every_order_has_all_cards(seller, sort):
    assert (await search(seller, "", sort=sort))["total"] == 7


async def test_pages(seller):
    whole = [card["id"] for card in (await search(seller, ""))["cards"]]
    pages = [await search(seller, "", per_page=3, page=number) for number in (1, 2, 3, 4)]
    assert [card["id"] for page in pages for card in page["cards"]] == whole
    assert {(page["total"], page["total_pages"], page["per_page"]) for page in pages} == {(7, 3, 3)}
    assert pages[3]["cards"] == []
    assert (await search(seller, "", per_page=1_000))["per_page"] == 200
    assert (await search(seller, "", per_page="x", page=-1))["per_page"] == 50


async def test_a_seller_finds_its_own_cards_alone(seller, a_seller):
    other = await a_seller()
    await other.import_csv(a_csv(a_row(1, name="Other Bolt")))
    theirs = (await card_ids(other))[1]
    assert [
        card["product_name"] for card in (await search(other, "bolt", status="all"))["cards"]
    ] == ["Other Bolt"]
    assert await found(seller, "", selected_ids=str(theirs)) == []
    assert await found(seller, f"id:{theirs}") == []
    assert (await seller.get(f"/api/cards/{theirs}")).status_code == 404


async def test_a_search_over_its_time_is_told(seller, service, monkeypatch):
    monkeypatch.setitem(
        __import__("cardsync.stock.search.compile", fromlist=["FLAGS"]).FLAGS,
        "held",
        "pg_sleep(9) IS NULL",
    )
    service.app.state.settings = service.settings.model_copy(update={"read_seconds": 0.05})
    try:
        page = await search(seller, "is:held")
    finally:
        service.app.state.settings = service.settings
    assert page["cards"] == []
    assert "takes longer than" in page["query_errors"][0]["message"]


@pytest.mark.night
@pytest.mark.day
async def test_a_card_with_its_history(a_seller):
    seller = await a_seller()
    for day, price in enumerate(("1.00", "2.00", "3.00")):
        moment = clock.rfc3339(clock.now() - timedelta(days=3 - day))
        await seller.import_csv(
            a_csv(a_row(1, price=price, quantity=day + 1)), **{"X-Exported-At": moment}
        )
    card_id = (await card_ids(seller))[1]
    card = (await seller.get(f"/api/cards/{card_id}")).json()
    assert (card["marketplace_id"], card["price"]) == (1, "3.00")
    assert [(one["price"], one["quantity"]) for one in card["history"]] == [
        ("3.00", 3),
        ("2.00", 2),
        ("1.00", 1),
    ]
    assert card["history"][0].keys() == {
        "observed_at",
        "price",
        "market_price",
        "low_price",
        "low_price_with_shipping",
        "direct_low",
        "quantity",
    }
    assert (await seller.get("/api/cards/999999999")).json()["code"] == "not_found"


@pytest.mark.night
async def test_custom_listings_are_found_by_their_negative_ids(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(7), a_row(7, title="Signed", photo="https://example.invalid/p.jpg"))
    )
    assert await found(seller, "is:custom has:photo") == [-1]
    assert await found(seller, "sku:-1") == [-1]
    assert await found(seller, "sku:..-1|7") == [-1, 7]


@pytest.mark.night
async def test_a_rule_governs_what_no_rule_before_it_selects(a_seller, service):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, name="Lightning Bolt"), a_row(2, name="Bolt of Cloth"), a_row(3))
    )
    insert = (
        "INSERT INTO pricing_rule (seller_id, name, priority, state, query, settings)"
        " VALUES (:s, :n, :p, :t, :q, '{}')"
    )
    for priority, (name, state, query) in enumerate(
        [
            ("First", "published", "lightning"),
            ("Draft", "draft", ""),
            ("Second", "published", "bolt list:nowhere or bolt"),
        ]
    ):
        await service.sql(seller.id, insert, s=seller.id, n=name, p=priority + 1, t=state, q=query)
    assert await found(seller, "rule:First") == [1]
    assert await found(seller, 'rule:"second"') == [2]
    assert await found(seller, "rule:draft") == []
    await service.sql(
        seller.id,
        "UPDATE account SET default_rule_enabled = false WHERE seller_id = :s",
        s=seller.id,
    )
    assert await found(seller, "has:rule") == [1, 2]
    await service.sql(
        seller.id,
        "UPDATE pricing_rule SET query = '(' WHERE seller_id = :s AND name = 'First'",
        s=seller.id,
    )
    assert await found(seller, "has:rule") == []


@pytest.mark.night
@pytest.mark.day
async def test_trust_is_what_imports_and_orders_tell(a_seller):
    seller = await a_seller()

    async def sync(days: int, *rows):
        await seller.import_csv(
            a_csv(*rows), **{"X-Exported-At": clock.rfc3339(clock.now() - timedelta(days=days))}
        )

    others = [a_row(id) for id in range(10, 40)]
    await sync(
        9, a_row(1, quantity=4), a_row(2, quantity=4), a_row(3, quantity=1), a_row(4), *others
    )
    assert await found(seller, "is:confirmed") == []
    assert 1 in await found(seller, "is:in-flux")
    order = await an_order(seller, order_date=(clock.now() - timedelta(days=5)).date())
    await an_item(seller, order, sku_id=1, quantity=3)
    # 1 was sold thrice; 2 lost one that nobody bought; 3 disappeared; 4 moved its price alone.
    await sync(3, a_row(1, quantity=1), a_row(2, quantity=3), a_row(4, price="9.99"), *others)
    assert await found(seller, "is:in-flux") == [1, 2]
    assert {4, *range(10, 40)} == set(await found(seller, "is:confirmed"))
    assert await found(seller, "is:audit") == [2]
    assert await found(seller, "is:audit is:gone") == [3]
    await sync(1, a_row(1, quantity=1), a_row(2, quantity=3), a_row(4, price="9.99"), *others)
    assert await found(seller, "is:in-flux") == []
    # Another price does not make the loss forgotten, and neither does an order whose money went
    # back.
    back = await an_order(
        seller, order_date=(clock.now() - timedelta(days=4)).date(), total_amt=2, refund_amt=2
    )
    await an_item(seller, back, sku_id=2, quantity=1)
    await sync(
        0, a_row(1, quantity=1), a_row(2, quantity=3, price="3.33"), a_row(4, price="9.99"), *others
    )
    assert await found(seller, "is:audit") == [2]
    await change_order(seller, back, refund_amt=1)
    assert await found(seller, "is:audit") == []


@pytest.mark.night
@pytest.mark.day
async def test_a_loss_is_neither_forgotten_for_a_later_sale_nor_covered_by_an_earlier_one(a_seller):
    seller = await a_seller()

    async def sync(hours: int, first: int, second: int):
        moment = clock.rfc3339(clock.now() - timedelta(hours=hours))
        await seller.import_csv(
            a_csv(a_row(1, quantity=first), a_row(2, quantity=second)), **{"X-Exported-At": moment}
        )

    await sync(240, 5, 5)
    # Two of the first are sold, two of the second are lost.
    order = await an_order(seller, order_date=(clock.now() - timedelta(days=5)).date())
    await an_item(seller, order, sku_id=1, quantity=2)
    await sync(100, 3, 3)
    assert await found(seller, "is:audit") == [2]
    # One more of the first is lost, soon after; one of the second is sold.
    order = await an_order(seller, order_date=(clock.now() - timedelta(days=3)).date())
    await an_item(seller, order, sku_id=2, quantity=1)
    await sync(50, 2, 2)
    assert await found(seller, "is:audit") == [1, 2]
    await sync(1, 6, 6)
    assert await found(seller, "is:audit") == []


@pytest.mark.night
@pytest.mark.day
async def test_what_the_last_pricing_held_is_held(a_seller):
    """A rule may hold what would move too far: told after a pricing with the upload, and after
    one of its own.
    """
    seller = await a_seller(lines=["magic", "pokemon"])
    cap = {"cap": {"mode": "hold", "up_bp": 3_000, "down_bp": 3_000, "period": "sync"}}

    async def ruled(settings: dict, query: str = ""):
        set_rule = (
            "UPDATE pricing_rule SET settings = settings || CAST(:c AS jsonb), query = :q"
            " WHERE seller_id = :s"
        )
        await seller.service.sql(seller.id, set_rule, s=seller.id, c=json.dumps(settings), q=query)

    await ruled(cap)
    far = {"price": "1.00", "market": "9.00", "low": "9.00"}
    await seller.import_csv(a_csv(a_row(1, **far), a_row(2), a_row(3, line="Pokemon", **far)))
    assert await found(seller, "is:held") == [1, 3]
    # A file of one line says nothing of the other's.
    await seller.import_csv(a_csv(a_row(1), a_row(2)), **{"X-Product-Line": "magic"})
    assert await found(seller, "is:held") == [3]
    await seller.import_csv(a_csv(a_row(1, **far), a_row(2)), **{"X-Product-Line": "magic"})
    await ruled({"cap": None})
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    assert await found(seller, "is:held") == []
    await ruled(cap, "id>0")
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    assert await found(seller, "is:held") == [1, 3]


@pytest.mark.night
async def test_a_receipt_is_there_where_the_last_sync_wrote_one(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    await seller.import_csv(a_csv(a_row(1), a_row(2, line="Pokemon")))
    assert await found(seller, "has:receipt") == [1, 2]
    await seller.service.sql(
        seller.id,
        "UPDATE account SET attribution_logging = false WHERE seller_id = :s",
        s=seller.id,
    )
    await seller.import_csv(a_csv(a_row(1, price="3.00"), a_row(2, line="Pokemon")))
    assert await found(seller, "has:receipt") == []
    explained = (await seller.get("/api/v1/pricing/explain/1")).json()
    assert explained["historical_breakdown"] is None


@pytest.mark.night
async def test_a_custom_listing_that_was_sold_is_not_audited(a_seller):
    seller = await a_seller()
    photo = {"title": "Signed", "photo": "https://example.invalid/1.jpg"}
    for days, quantity in ((6, 2), (2, 1)):
        moment = clock.rfc3339(clock.now() - timedelta(days=days))
        await seller.import_csv(
            a_csv(a_row(1, quantity=quantity, **photo)), **{"X-Exported-At": moment}
        )
    assert len((await seller.get("/api/cards?search=is:audit")).json()["cards"]) == 1
    order = await an_order(seller, order_date=(clock.now() - timedelta(days=4)).date())
    await an_item(seller, order, sku_id=1, quantity=1)
    assert (await seller.get("/api/cards?search=is:audit")).json()["cards"] == []


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(f"{chr(97 + n % 26)}{n}" for n in range(200)),
        "name:" + "|".join(f"{n}%_" for n in range(200)),
        "-".join(f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(600)),
        "-(" * 20 + "a or b" + ")" * 20,
        '"' + "%" * 1_998 + '"',
        (
            "is:audit is:moved is:confirmed is:location-drift -is:in-flux has:rule unshelved>0"
            " change>1"
        ),
    ],
)
async def test_a_hostile_search_is_answered(seller, text):
    page = await search(seller, text)
    assert page["query_errors"] == []
    assert page["total"] <= 7


@pytest.mark.night
async def test_a_rule_that_asks_for_a_game_that_is_not_there_blocks_like_one_that_cannot_be_read(
    a_seller, service
):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, name="Lightning Bolt"), a_row(2, name="Bolt of Cloth"), a_row(3))
    )
    await rules(seller, "lightning", "game:chess", "bolt")
    assert await found(seller, "has:rule") == [1]
    assert await found(seller, "rule:R0") == [1]
    assert await found(seller, "rule:R1|R2") == []
    assert await found(seller, "-rule:R0|R2") == [2, 3]


async def rules(seller, *queries):
    """In place of the seller's own: R0, R1, …"""
    await seller.service.sql(
        seller.id, "DELETE FROM pricing_rule WHERE seller_id = :s", s=seller.id
    )
    insert = (
        "INSERT INTO pricing_rule (seller_id, name, priority, state, query, settings)"
        " SELECT :s, 'R' || n, n + 1, 'published', query, '{}'"
        " FROM unnest(CAST(:q AS text[])) WITH ORDINALITY AS given(query, at),"
        " LATERAL (SELECT (at - 1)::integer AS n) AS numbered"
    )
    await seller.service.sql(seller.id, insert, s=seller.id, q=list(queries))


@pytest.mark.night
async def test_asking_for_rules_costs_what_the_rules_have_not_its_square(
    a_seller, service, monkeypatch
):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Lightning Bolt"), a_row(2)))
    words = " or ".join(f"w{number}" for number in range(49))
    await rules(seller, *([words] * 39), f"{words} or bolt")
    assert await found(seller, "has:rule") == [1]
    assert await found(seller, "rule:R39") == [1]
    [problem] = (await search(seller, "bolt rule:R39 or has:rule"))["query_errors"]
    assert (problem["message"], problem["offset"]) == (
        "has: the rules have more than 2,000 terms to compare with",
        17,
    )
    await rules(seller, *([" or ".join(f"w{number}" for number in range(200))] * 40))
    [problem] = (await search(seller, "has:rule"))["query_errors"]
    assert "more than 2,000 terms" in problem["message"]


@pytest.mark.night
async def test_a_long_statement_is_kept_by_nobody(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    before = bound_text.kept_named.cache_info().currsize
    for number in range(3):
        assert await found(seller, " or ".join(f"w{n}" for n in range(190 + number))) == []
    assert bound_text.kept_named.cache_info().currsize <= before + 3


VARIANTS = [
    a_row(1, line="Pokemon", name="Charizard (12) Staff of X"),
    a_row(2, line="Pokemon", name="Pikachu (Staff Prerelease)"),
    a_row(3, line="Pokemon", name="Mewtwo", set="2004 Decks (World Championships 2004)"),
    a_row(4, line="Pokemon", name="Eevee [Champion's Staff]", set="Base Set (Shadowless)"),
    a_row(5, line="Pokemon", name="Staff Bearer", set="Staff Set", rarity="Rare (Staff)"),
    a_row(6, line="Pokemon", name="Torchic (staffage] (50%)", set="Energy (No Symbol)"),
    a_row(7, line="Pokemon", name="Ditto (Staff"),
]  # fmt: skip


@pytest.fixture(scope="module")
async def with_variants(service):
    from builders import SellerBuilder

    seller = await SellerBuilder(service)(lines=["pokemon"])
    await seller.import_csv(a_csv(*VARIANTS))
    return seller


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("v:staff", [2, 4]),
        ("v!=staff", [1, 3, 6]),
        ("-v:staff", [1, 3, 5, 6, 7]),
        ("v!=staff|12", [3, 6]),
        ("is:stamped", [2, 4]),
        ("v:champion", [4]),
        ('v:"world championships"', [3]),
        ("v:championships", [3]),
        ("v:world-championships", []),
        ("v:shadowless", [4]),
        ("v:no symbol", [6]),
        ("v:%", [6]),
        ("v:50", [6]),
        ('v:"staff)"', []),
        ('v:"staffage]"', [6]),
        ('v:")]"', []),
    ],
)
@pytest.mark.night
async def test_a_variant_is_whole_words_inside_one_pair_of_brackets(with_variants, text, ids):
    assert await found(with_variants, text) == ids
