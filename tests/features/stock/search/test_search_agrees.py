"""SQL and the slow evaluator select the same rows, whatever the tree and whatever the inventory."""

import random
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from search_trees import NAMES, NUMBERS, RARITIES, RULES, SETS, depth, trees

from builders import SellerBuilder, a_csv, a_row
from cards_builder import a_list, a_place, card_ids
from cardsync.platform import clock
from cardsync.platform.database.snapshot_reads import Readings
from cardsync.stock.cards.card_filter import CardFilter
from cardsync.stock.cards.selection import select_cards
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import print_query
from lots_builder import add, settle
from orders_builder import an_item, an_order
from search_evaluator import inventory_of, selected

CONDITIONS = [
    "Near Mint",
    "Lightly Played Foil",
    "Damaged 1st Edition Holofoil",
    "Unopened",
    "",
    "Moderately Played Unlimited",
    "Near Mint - Japanese",
    "Heavily Played Limited",
    "nonsense",
]
AMOUNTS = ["", "0.50", "1.00", "4.99", "5.0001", "2.00"]
VARIANTS = [
    "",
    " (Staff)",
    " [Prerelease]",
    " (No Symbol)",
    " (1999-2000)",
    " (No Rarity)",
    " (50%)",
]
LINES = ["Magic", "Pokemon", "Pokemon Japan"]
PLACES = [(1, 1), (1, 2), (2, 1), (12, 3), ("A1", 1), ("Binder 3", 2), ("A..B", 1)]


def rows_of(dice: random.Random) -> list[dict[str, str]]:
    def row(id: int) -> dict[str, str]:
        name = dice.choice(NAMES) + dice.choice(VARIANTS)
        more = (
            {"title": f"Photo {id}", "photo": "https://example.invalid/x.jpg"}
            if dice.random() < 0.15
            else {}
        )
        return a_row(
            id, name=name, line=dice.choice(LINES), set=dice.choice(SETS),
            number=dice.choice(NUMBERS), rarity=dice.choice(RARITIES),
            condition=dice.choice(CONDITIONS), quantity=dice.choice([0, 1, 1, 2, 5, 12]),
            price=dice.choice(AMOUNTS),
            market=dice.choice(AMOUNTS), low=dice.choice(AMOUNTS), direct=dice.choice(AMOUNTS),
            **more,
        )  # fmt: skip

    return [row(id) for id in range(1, 31)]


async def an_inventory(service, seed: int):
    """A seller with three syncs behind it, lists, places, sales and a rule; and the same as the
    evaluator sees it.
    """
    dice = random.Random(seed)
    seller = await SellerBuilder(service)(lines=["magic", "pokemon", "pokemon_japan"])
    rows = rows_of(dice)
    for days in (20, 6, 1):
        moment = clock.rfc3339(clock.now() - timedelta(days=days))
        await seller.import_csv(a_csv(*rows), **{"X-Exported-At": moment})
        changed = rows_of(dice)
        kept = [dice.random() < 0.6 for _ in rows]
        rows = [old if same else new for old, new, same in zip(rows, changed, kept, strict=True)]
    ids = list((await card_ids(seller)).values())
    for name, slug in (("My Binder", "binder"), ('The "B"', "the-b")):
        await a_list(seller, name, *dice.sample(ids, 8), slug=slug)
    for card_id in dice.sample(ids, 9):
        for box, slot in dice.sample(PLACES, dice.choice([1, 2])):
            await a_place(seller, card_id, box, slot, dice.choice([1, 2, 6]))
    for sku in dice.sample(range(1, 31), 8):
        placed = (clock.now() - timedelta(days=dice.choice([1, 5, 25]))).date()
        ended = dice.choice(
            [
                {},
                {},
                {"status": "Canceled"},
                {"total_amt": 5, "refund_amt": 5},
                {"total_amt": 5, "refund_amt": 2},
            ]
        )
        await an_item(
            seller,
            await an_order(seller, order_date=placed, **ended),
            sku_id=sku,
            quantity=dice.choice([1, 4]),
        )
    today = clock.now().date()
    await add(
        seller,
        *(
            (sku, dice.choice([1, 3]), dice.choice([None, Decimal("0.50"), Decimal(2)]),
             today - timedelta(days=dice.choice([0, 5, 40])))
            for sku in dice.sample(range(1, 31), 12)
        ),
    )  # fmt: skip
    await settle(seller)
    await service.sql(seller.id, "DELETE FROM pricing_rule WHERE seller_id = :s", s=seller.id)
    queries = {
        "Premium": "bolt price>=2",
        "Draft": "",
        "Lost": "list:nowhere or cn:6",
        "None": "-(list:binder cond:NM)",
        "Broken": "(",
        "Behind": "",
    }
    # A broken rule blocks all behind it, wherever it stands.
    names = dice.sample(RULES, len(RULES))
    kept_rules = []
    insert = (
        "INSERT INTO pricing_rule (seller_id, name, priority, state, query, settings)"
        " VALUES (:s, :n, :p, :state, :q, '{}') RETURNING id"
    )
    for priority, name in enumerate(names, 1):
        state, query = "draft" if name == "Draft" else "published", queries[name]
        [made] = await service.sql(
            seller.id, insert, s=seller.id, n=name, p=priority, q=query, state=state
        )
        if name != "Draft":
            kept_rules.append((made["id"], name, None if name == "Broken" else parse(query)))
    decided = (
        "INSERT INTO price_decision (seller_id, kind, marketplace_id, price)"
        " VALUES (:s, :kind, :sku, 1) ON CONFLICT DO NOTHING"
    )
    for sku in dice.sample(range(1, 31), 4):
        await service.sql(seller.id, decided, s=seller.id, kind="pin", sku=sku)
    for sku in dice.sample(range(1, 31), 6):
        await service.sql(seller.id, decided, s=seller.id, kind="cap", sku=sku)
    held = decided.replace("price)", "part, price)").replace(":sku, 1)", ":sku, 1, 1)")
    for sku in dice.sample(range(1, 31), 3):
        await service.sql(seller.id, held, s=seller.id, kind="cap", sku=sku)
    # Some targets are above, some below, some missing.
    await service.sql(
        seller.id,
        """
        WITH o AS MATERIALIZED (
            SELECT id, created_at - id % 9 * interval '1 day' AS earlier
              FROM card WHERE seller_id = :s)
        UPDATE card c SET created_at = o.earlier,
               target_price = CASE WHEN c.id % 4 = 0 THEN NULL WHEN c.id % 4 = 1 THEN price * 0.9
                                   WHEN c.id % 4 = 2 THEN price + 1 ELSE target_price END
          FROM o WHERE c.seller_id = :s AND c.id = o.id
        """,
        s=seller.id,
    )
    return seller, await inventory_of(seller, kept_rules, clock.now())


async def sql_selects(readings: Readings, seller_id: int, text: str, now) -> list[int]:
    async with readings.of(seller_id, 20) as reading:
        owner = SimpleNamespace(seller_id=seller_id, member_id=None, sees_revenue=True)
        found = await select_cards(reading.rows, owner, CardFilter(search=text), now)
        rows = await reading.rows(
            f"SELECT c.id FROM card c WHERE {found.where} ORDER BY c.id", found.values
        )
    return [id for (id,) in rows]


async def agree(service, seeds: range, trees_each: int) -> None:
    readings = service.app.state.database.readings
    for seed in seeds:
        seller, inventory = await an_inventory(service, seed)
        for tree in some_trees(seed, trees_each):
            text = print_query(tree)
            assert await sql_selects(readings, seller.id, text, inventory.now) == selected(
                inventory, tree
            ), (
                seed,
                text,
            )


def some_trees(seed: int, count: int):
    found = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(trees.filter(lambda tree: depth(tree) <= 20))
    def gather(tree):
        found.append(tree)

    gather._hypothesis_internal_use_seed = seed
    gather()
    return found


@pytest.mark.day
async def test_sql_agrees_about_rules_by_their_ids_drafts_and_broken_ones(service):
    readings = service.app.state.database.readings
    for seed in (3, 4):
        seller, inventory = await an_inventory(service, seed)
        ids = await service.sql(
            seller.id, "SELECT id FROM pricing_rule WHERE seller_id = :s", s=seller.id
        )
        numbers = [f"rule:{row['id']}" for row in ids]
        for text in [
            *numbers,
            f"-{numbers[0]}|{ids[1]['id']}",
            "has:rule",
            "-has:rule",
            *(f"rule:{n}" for n in RULES),
        ]:
            assert await sql_selects(readings, seller.id, text, inventory.now) == selected(
                inventory, parse(text)
            ), text


WRITTEN = [
    *NAMES, "bolt", "po", "e", "%", "_", "-", "(", ")", " or ", " ", "|", '"', "..", "5", "1",
    "price>", "qty:", "cn:", "6", "s:", "set!=",
    "cond:", "NM", "LP", "f:", "foil", "v:", "v!=", "staff", "No Symbol", "list:binder",
    'list:"My Binder"', "is:", "gone", "held", "stamped",
    "not:", "has:", "rule", "photo", "rule:Premium", "change<", "%", "id:", "sku:", "loc:1-1",
    "box:", "lang:ja", "name:", "name=", "r:c",
]  # fmt: skip


@pytest.mark.day
async def test_sql_agrees_about_whatever_text_can_be_read(service):
    readings = service.app.state.database.readings
    seller, inventory = await an_inventory(service, 5)
    dice = random.Random(5)
    compared = 0
    while compared < 80:
        text = dice.choice(["", " "]).join(dice.choices(WRITTEN, k=dice.randint(1, 7)))
        try:
            tree = parse(text)
            found = await sql_selects(readings, seller.id, text, inventory.now)
        except QueryError:
            continue
        assert found == selected(inventory, tree), text
        compared += 1


@pytest.mark.day
async def test_sql_agrees_with_the_slow_evaluator(service):
    await agree(service, range(2), 60)


@pytest.mark.night
async def test_sql_agrees_with_the_slow_evaluator_on_five_thousand_trees(service):
    await agree(service, range(100, 125), 200)
