"""The product of an uploaded row: its SKU's, the catalog's, or one made from the row itself."""

import pytest
from sqlalchemy import text

from builders import a_csv, a_row, read_csv

# A row that gives its number without the total fits both.
SNIVY_OF_86 = {"game": "pokemon", "product_name": "Snivy", "number": "001/086"}
SNIVY_OF_90 = {"game": "pokemon", "product_name": "Snivy", "number": "001/090"}


async def products(service, a_set):
    return await service.sql(
        1, "SELECT * FROM product WHERE set_name = :name ORDER BY id", name=a_set
    )


async def matches(seller):
    return {
        card["marketplace_id"]: (card["match"], card["product_id"]) for card in await seller.cards()
    }


@pytest.mark.night
async def test_a_row_that_one_product_of_the_catalog_describes_is_matched(
    a_seller, service, a_set, load
):
    await load({"product_name": "Serra Angel"}, {"product_name": "Shivan Dragon", "number": "8"})
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row(1, set=a_set, name="Serra Angel", number="7")))
    assert (report["matched"], report["provisional"], report["ambiguous"]) == (1, 0, 0)
    angel = (await products(service, a_set))[0]
    assert (angel["product_name"], angel["provisional"]) == ("Serra Angel", False)
    assert await matches(seller) == {1: ("matched", angel["id"])}


@pytest.mark.night
async def test_conditions_of_one_printing_are_one_product(a_seller, a_set, load):
    await load({"product_name": "Serra Angel"})
    seller = await a_seller()
    conditions = ["Near Mint", "Lightly Played", "Damaged"]
    rows = [
        a_row(n, set=a_set, name="Serra Angel", number="7", condition=c)
        for n, c in enumerate(conditions, 1)
    ]
    await seller.import_csv(a_csv(*rows))
    assert len({product for _, product in (await matches(seller)).values()}) == 1


@pytest.mark.night
async def test_a_matched_sku_keeps_its_product_when_the_catalog_becomes_ambiguous(
    a_seller, a_set, load
):
    await load(SNIVY_OF_86)
    seller = await a_seller()
    snivy = {"line": "Pokemon", "set": a_set, "name": "Snivy", "number": "001"}
    await seller.import_csv(a_csv(a_row(1, **snivy)))
    before = await matches(seller)
    await load(SNIVY_OF_90)
    report = await seller.import_csv(a_csv(a_row(1, **snivy, quantity=9), a_row(2, **snivy)))
    assert (report["matched"], report["ambiguous"]) == (1, 1)
    assert (await matches(seller))[1] == before[1]


async def test_what_several_products_fit_is_ambiguous_and_gets_a_product_of_its_own(
    a_seller, service, a_set, load
):
    await load(SNIVY_OF_86, SNIVY_OF_90)
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, line="Pokemon", set=a_set, name="Snivy", number="001"))
    )
    assert (report["matched"], report["provisional"], report["ambiguous"]) == (0, 0, 1)
    own = (await products(service, a_set))[-1]
    assert own["provisional"]
    assert await matches(seller) == {1: ("ambiguous", own["id"])}


@pytest.mark.night
async def test_what_the_catalog_lacks_becomes_a_provisional_product(a_seller, service, a_set):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, set=a_set, name="Serra Angel", number="7", rarity="U"))
    )
    assert (report["matched"], report["provisional"]) == (0, 1)
    made = await products(service, a_set)
    assert [
        (row["provisional"], row["game"], row["product_name"], row["number"]) for row in made
    ] == [(True, "magic", "Serra Angel", "7")]
    assert await matches(seller) == {1: ("provisional", made[0]["id"])}


@pytest.mark.night
async def test_sellers_share_a_provisional_product(a_seller, service, a_set):
    sellers = [await a_seller() for _ in range(2)]
    for n, seller in enumerate(sellers, start=1):
        await seller.import_csv(a_csv(a_row(n, set=a_set, name="Serra Angel", number="7")))
    assert len(await products(service, a_set)) == 1
    assert (await matches(sellers[0]))[1] == (await matches(sellers[1]))[2]


@pytest.mark.night
async def test_finishes_and_variants_are_products_apart(a_seller, service, a_set):
    seller = await a_seller()
    names = [
        ("Snivy", "Near Mint"),
        ("Snivy (Master Ball Pattern)", "Near Mint"),
        ("Snivy", "Near Mint Holofoil"),
    ]
    await seller.import_csv(
        a_csv(
            *(
                a_row(n, line="Pokemon", set=a_set, name=name, number="001/086", condition=c)
                for n, (name, c) in enumerate(names, 1)
            )
        )
    )
    assert len({product for _, product in (await matches(seller)).values()}) == 3


SPOKEN = ("Near Mint", "Near Mint - German", "Near Mint Foil - Japanese", "Damaged Foil")


async def test_copies_in_every_language_are_one_product(a_seller, service, a_set, load):
    """Without a catalog and with one; a product that a program before this one made for German is
    left at the next upload, and the card keeps its row.
    """
    seller = await a_seller()
    file = a_csv(
        *(
            a_row(n, set=a_set, name="Serra Angel", number="7", condition=condition)
            for n, condition in enumerate(SPOKEN, 1)
        )
    )
    await seller.import_csv(file)
    cards = await seller.cards()
    foil, normal = sorted(await products(service, a_set), key=lambda one: one["finish"])
    assert {product["language"] for product in (normal, foil)} == {"English"}
    alone = [normal["id"], normal["id"], foil["id"], foil["id"]]
    assert [card["product_id"] for card in cards] == alone
    [old] = await service.sql(
        1,
        "INSERT INTO product (identity, game, set_name, product_name, language, language_key,"
        " provisional) VALUES (md5(:name), 'magic', :name, 'Serra Angel', 'German', 'de', true)"
        " RETURNING id",
        name=a_set,
    )
    bind = "UPDATE card SET product_id = :old WHERE seller_id = :seller AND marketplace_id = 2"
    await service.sql(seller.id, bind, old=old["id"], seller=seller.id)
    await seller.import_csv(file)
    assert [card["product_id"] for card in await seller.cards()] == alone
    await load({"product_name": "Serra Angel"})
    report = await seller.import_csv(file)
    assert (report["matched"], report["provisional"]) == (4, 0)
    after = await seller.cards()
    assert len({card["product_id"] for card in after}) == 1
    assert [card["id"] for card in after] == [card["id"] for card in cards]


async def test_a_later_catalog_adopts_a_provisional_product_under_its_id(
    a_seller, service, a_set, load
):
    seller = await a_seller()
    file = a_csv(a_row(1, set=a_set, name="Serra Angel", number="7"))
    await seller.import_csv(file)
    before = await seller.cards()
    said = await load({"product_name": "Serra Angel", "product_id": "11"})
    assert "1 provisional" in said
    [product] = await products(service, a_set)
    assert (product["id"], product["provisional"], product["marketplace_product_id"]) == (
        before[0]["product_id"],
        False,
        11,
    )
    report = await seller.import_csv(file)
    assert (report["matched"], report["provisional"]) == (1, 0)
    after = await seller.cards()
    assert [(card["id"], card["product_id"], card["match"]) for card in after] == [
        (before[0]["id"], before[0]["product_id"], "matched")
    ]


@pytest.mark.night
async def test_two_provisional_products_of_one_card_become_one(a_seller, service, a_set, load):
    seller = await a_seller()
    rows = [
        a_row(1, line="Pokemon", set=a_set, name="Snivy", number="1"),
        a_row(2, line="Pokemon", set=a_set, name="Snivy", number="001/086"),
    ]
    await seller.import_csv(a_csv(*rows))
    before = await matches(seller)
    assert before[1][1] != before[2][1]
    await load({"game": "pokemon", "product_name": "Snivy", "number": "001/086"})
    await seller.import_csv(a_csv(*rows))
    after = await matches(seller)
    assert {match for match, _ in after.values()} == {"matched"}
    assert after[1][1] == after[2][1]
    assert after[1][1] in {before[1][1], before[2][1]}


@pytest.mark.night
async def test_a_catalog_that_is_ambiguous_adopts_nothing(a_seller, service, a_set, load):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, line="Pokemon", set=a_set, name="Snivy", number="001")))
    said = await load(SNIVY_OF_86, SNIVY_OF_90)
    assert "0 provisional" in said
    assert [row["provisional"] for row in await products(service, a_set)] == [True, False, False]


@pytest.mark.night
async def test_the_first_report_after_a_catalog_counts_only_what_it_knows(a_seller, a_set, load):
    await load({"product_name": "Serra Angel"})
    seller = await a_seller()
    rows = [
        a_row(1, set=a_set, name="Serra Angel", number="7"),
        a_row(2, set=a_set, name="Unheard Of", number="8"),
    ]
    report = await seller.import_csv(a_csv(*rows))
    assert (report["matched"], report["provisional"], report["ambiguous"]) == (1, 1, 0)


@pytest.mark.night
async def test_an_unreadable_condition_keeps_the_row_and_says_so(a_seller):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1, condition="Well Loved"), a_row(2, condition=""))
    )
    assert (report["applied"], report["rejected_count"]) == (2, 0)
    cards = await seller.cards()
    assert [(card["condition"], card["condition_label"]) for card in cards] == [
        (None, "Well Loved"),
        (None, ""),
    ]
    assert {(row["line"], row["column"]) for row in report["noted"]} >= {(2, "Condition")}


async def test_a_card_that_was_unreadable_is_read_at_the_next_upload(a_seller, service):
    """As the migration leaves it that came with the tables of printings."""
    seller = await a_seller(lines=["lorcana"])
    rows = [
        a_row(id, line="Lorcana TCG", name="Elsa", number="41/204", condition=condition)
        for id, condition in ((1, "Near Mint"), (2, "Near Mint Cold Foil"))
    ]
    await seller.import_csv(a_csv(*rows))
    before = await seller.cards()
    async with service.database.tenant(seller.id) as session:
        await session.execute(
            text(
                "UPDATE card SET condition = NULL, printing = '', identity_hash = 0,"
                " product_id = :plain WHERE seller_id = :seller AND marketplace_id = 2"
            ),
            {"seller": seller.id, "plain": before[0]["product_id"]},
        )
    report = await seller.import_csv(a_csv(*rows))
    assert (report["new_printing"], report["noted_count"]) == (0, 0)
    after = await seller.cards()
    assert [(card["condition"], card["printing"]) for card in after] == [
        ("NM", "Normal"),
        ("NM", "Cold Foil"),
    ]
    assert [card["product_id"] for card in after] == [card["product_id"] for card in before]


@pytest.mark.night
async def test_a_renamed_provisional_card_is_told_by_its_new_name(a_seller, a_set, load):
    await load({"product_name": "Serra Angel"})
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, set=a_set, name="Sera Angle", number="7")))
    card = (await seller.cards())[0]
    assert card["match"] == "provisional"
    report = await seller.import_csv(a_csv(a_row(1, set=a_set, name="Serra Angel", number="7")))
    assert report["matched"] == 1
    renamed = (await seller.cards())[0]
    assert (renamed["id"], renamed["product_name"], renamed["match"]) == (
        card["id"],
        "Serra Angel",
        "matched",
    )


@pytest.mark.night
async def test_a_renamed_matched_card_keeps_its_product_and_takes_the_new_texts(
    a_seller, a_set, load
):
    await load({"product_name": "Serra Angel"})
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, set=a_set, name="Serra Angel", number="7")))
    before = await matches(seller)
    await seller.import_csv(
        a_csv(a_row(1, set=a_set, name="Serra Angel (Retro)", number="7", market="3.00"))
    )
    assert await matches(seller) == before
    assert (await seller.cards())[0]["product_name"] == "Serra Angel (Retro)"
    assert [row["Product Name"] for row in read_csv((await seller.export()).content)] == [
        "Serra Angel (Retro)"
    ]


def custom(id, title, **cells):
    return a_row(
        id,
        title=title,
        name=f"Serra Angel: {title}",
        photo=f"https://photos.example/{id}.jpg",
        **cells,
    )


async def test_a_custom_listing_has_a_negative_id_that_it_keeps(a_seller):
    seller = await a_seller()
    first = a_csv(custom(1, "signed"), custom(2, "altered"), a_row(3))
    await seller.import_csv(first)
    before = {
        card["title"]: (card["marketplace_id"], card["id"], card["custom"])
        for card in await seller.cards()
    }
    assert before["signed"][0] < 0
    assert before["altered"][0] < 0
    assert before["signed"][0] != before["altered"][0]
    assert before[""][0] == 3
    await seller.import_csv(
        a_csv(custom(5, "new"), a_row(3), custom(2, "altered", quantity=4), custom(1, "signed"))
    )
    after = {
        card["title"]: (card["marketplace_id"], card["id"], card["custom"])
        for card in await seller.cards()
    }
    assert {title: after[title] for title in before} == before
    assert len({number for number, _, _ in after.values()}) == 4


async def test_a_custom_listing_is_exported_under_its_own_listing_id(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(custom(77, "signed", market="2.00"), a_row(78, market="1.00")))
    rows = read_csv((await seller.export()).content)
    assert [(row["TCGplayer Id"], row["Title"], row["TCG Marketplace Price"]) for row in rows] == [
        ("77", "signed", "1.9800")
    ]


async def test_an_id_that_a_custom_listing_shares_is_stored_twice_and_exported_never(a_seller):
    seller = await a_seller()
    rows = [custom(7, "signed", market="2.00"), a_row(7, market="2.00"), a_row(8, market="2.00")]
    report = await seller.import_csv(a_csv(*rows))
    assert (report["applied"], report["duplicates"]) == (3, 0)
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == ["8"]


@pytest.mark.night
async def test_a_custom_listing_is_the_catalogs_product_without_its_title(a_seller, a_set, load):
    await load({"product_name": "Serra Angel"})
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(
            custom(1, "signed", set=a_set, number="7"),
            a_row(2, set=a_set, name="Serra Angel", number="7"),
        )
    )
    assert report["matched"] == 2
    assert len({product for _, product in (await matches(seller)).values()}) == 1
