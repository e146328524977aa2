"""A card that a person names without its game is looked for in every product line of the shop."""

import pytest

from browsers import signed_in

BOLT = {"product_name": "Bolt", "number": "7"}


@pytest.fixture(params=["contributions", "quick_add"])
def named(request):
    """`await named(browser, **texts)` names a card: the status, the card made, and the refusal."""

    async def named(browser, **texts):
        card = {"name": "Bolt", "number": "7", "condition": "NM", "quantity": 1, **texts}
        if request.param == "contributions":
            answer = await browser.post("/api/contributions", json=card)
            told = answer.json()
        else:
            answer = await browser.post("/api/quick_add", json={"entries": [card]})
            told = answer.json()
            told = told["entries"][0] if answer.status_code == 201 else told
        return answer.status_code, told, told.get("error", "").removeprefix("entries[0].")

    return named


async def stored(service, a_set):
    return await service.sql(
        1, "SELECT game, provisional FROM product WHERE set_name = :name ORDER BY game", name=a_set
    )


async def test_the_one_line_that_has_it_is_meant(a_seller, service, named, a_set, load):
    await load(BOLT | {"game": "pokemon"})
    browser = await signed_in(await a_seller(lines=["magic", "pokemon", "yugioh"]))
    status, card, _ = await named(browser, set=a_set)
    assert (status, card["game"]) == (201, "pokemon")
    # No product of the first line was made up.
    assert await stored(service, a_set) == [{"game": "pokemon", "provisional": False}]


async def test_of_several_lines_the_caller_chooses(a_seller, service, named, a_set, load):
    await load(BOLT | {"game": "pokemon"}, BOLT | {"game": "magic"})
    browser = await signed_in(await a_seller(lines=["magic", "pokemon"]))
    status, _, error = await named(browser, set=a_set)
    assert status == 422
    ids = {row["game"]: row["id"] for row in await service.sql(
        1, "SELECT game, id FROM product WHERE set_name = :name", name=a_set
    )}  # fmt: skip
    assert error == (
        f"game: 'Bolt' is in magic (product {ids['magic']}), pokemon (product {ids['pokemon']});"
        " send the game or the product_id"
    )
    status, card, _ = await named(browser, set=a_set, game="pokemon")
    assert (status, card["product_id"]) == (201, ids["pokemon"])


async def test_what_no_line_has_needs_its_game(a_seller, service, named, a_set):
    browser = await signed_in(await a_seller(lines=["magic", "pokemon"]))
    status, _, error = await named(browser, set=a_set)
    assert status == 422
    assert error == ("game: no product line has 'Bolt' of this set; send one of magic, pokemon")
    assert await stored(service, a_set) == []
    status, _, _ = await named(browser, set=a_set, game="pokemon")
    assert status == 201
    assert await stored(service, a_set) == [{"game": "pokemon", "provisional": True}]


async def test_what_several_products_of_one_line_fit_is_of_that_line(
    a_seller, service, named, a_set, load
):
    await load(
        BOLT | {"game": "pokemon", "number": "7/86"}, BOLT | {"game": "pokemon", "number": "7/90"}
    )
    browser = await signed_in(await a_seller(lines=["magic", "pokemon"]))
    status, card, _ = await named(browser, set=a_set)
    assert (status, card["game"]) == (201, "pokemon")


async def test_a_line_that_the_shop_does_not_sell_is_not_looked_in(a_seller, named, a_set, load):
    await load(BOLT | {"game": "yugioh"})
    browser = await signed_in(await a_seller(lines=["magic", "pokemon"]))
    status, _, _ = await named(browser, set=a_set)
    assert status == 422


async def test_a_shop_of_one_line_need_not_say_which(a_seller, named, a_set):
    browser = await signed_in(await a_seller(lines=["pokemon"]))
    status, card, _ = await named(browser, set=a_set)
    assert (status, card["game"]) == (201, "pokemon")


async def test_a_printing_that_is_not_said_is_the_products_own(a_seller, named, a_set, load):
    await load(
        BOLT | {"game": "pokemon", "finish": "Holofoil"},
        BOLT | {"game": "pokemon", "number": "8", "finish": "Reverse Holofoil"},
        BOLT | {"game": "pokemon", "number": "8", "finish": "Normal"},
    )
    browser = await signed_in(await a_seller(lines=["pokemon"]))
    told = [
        await named(browser, set=a_set, **texts)
        for texts in (
            {},
            {"number": "8"},
            {"number": "8", "printing": "Reverse Holofoil"},
            {"number": "9"},
        )
    ]
    assert [(status, card["printing"]) for status, card, _ in told] == [
        (201, "Holofoil"), (201, "Normal"), (201, "Reverse Holofoil"), (201, "Normal")
    ]  # fmt: skip
    again = [{"product_id": card["product_id"], "name": None} for _, card, _ in told[:1]]
    assert (await named(browser, **again[0]))[1]["printing"] == "Holofoil"
