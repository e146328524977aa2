"""`POST /api/discovery/availability`: what a reference means, which sellers have it, and what is
said where nobody has.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import a_csv
from cardsync.network.offers import OFFERS
from cardsync.platform import clock
from discovery_builder import PATH, a_card, change, find


async def test_the_cheapest_sellers_of_a_printing(a_seller, a_shop, catalog, tag):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog(
        (name, base, "4/102", "Holofoil", 41), (name, f"Other {tag}", "5", "Holofoil", 42)
    )
    await a_shop("Alpha", a_card(1, name, base, "004/102", price="12.50", quantity=2))
    await a_shop(
        "Beta",
        a_card(2, name, base, "004/102", price="9.99", quantity=1),
        a_card(
            3, name, base, "004/102", price="7.10", quantity=4,
            Condition="Lightly Played Holofoil",
        ),
    )  # fmt: skip
    buyer = await a_seller()
    asked = {"name": name, "set": base, "number": "4/102"}
    answer = await buyer.post(PATH, json=asked)
    [found] = answer.json()["results"]
    assert found["status"] == "resolved"
    assert (found["total"], found["candidates"], found["truncated"]) == (1, [], False)
    assert found["owned_by_caller"] is False
    assert "fallback" not in found
    # The digits are exact: no float stands between the database and the answer.
    assert '"min_price":7.10,' in answer.text
    available = found["availability"]
    assert (available["min_price"], available["total_quantity"]) == (7.1, 7)
    link = "https://www.tcgplayer.com/product/41"
    assert available["sellers"] == [
        {"store_name": "Beta", "price": 7.1, "quantity": 5, "buy_url": link},
        {"store_name": "Alpha", "price": 12.5, "quantity": 2, "buy_url": link},
    ]
    assert available["as_of"]
    [product_id] = {found["product_id"]}
    assert isinstance(product_id, int)


async def test_copies_in_another_language_are_not_offered(a_seller, a_shop, catalog, tag):
    """A reference names no language: whoever asks for a printing gets none in German."""
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil", 41))
    german = "Near Mint Holofoil - German"
    await a_shop(
        "Alpha",
        a_card(1, name, base, "004/102", price="12.50", quantity=2),
        a_card(2, name, base, "004/102", price="9.50", quantity=3, Condition=german),
    )
    await a_shop("Beta", a_card(3, name, base, "004/102", price="8.00", Condition=german))
    [found] = await find(await a_seller(), {"name": name, "set": base, "number": "4/102"})
    assert (found["status"], found["availability"]["total_quantity"]) == ("resolved", 2)
    assert [one["price"] for one in found["availability"]["sellers"]] == [12.5]


@pytest.mark.parametrize("parted", [" // ", "/", " / ", "//"])
async def test_a_name_of_two_faces_is_its_front(a_seller, a_shop, catalog, tag, parted):
    """Whether the catalog has the back or not, for a question and for a basket."""
    isd, apc = f"Innistrad {tag}", f"Apocalypse {tag}"
    await catalog(
        (f"Delver {tag}", isd, "51"), (f"Delver {tag} (Showcase)", isd, "281"),
        (f"Fire {tag} // Ice", apc, "128"), (f"Firestorm {tag} Ice", apc, "129"),
        game="magic",
    )  # fmt: skip
    magic = {"line": "Magic", "Condition": "Near Mint"}
    await a_shop("Alpha", a_card(1, f"Delver {tag}", isd, "51", price="2.00", **magic))
    buyer = await a_seller()
    fronts = [
        {"name": f"Delver {tag}", "set": isd},
        {"name": f"Fire {tag}", "set": apc},
        {"name": f"Delver {tag} (Showcase)"},
    ]
    wholes = [
        {"name": f"Delver {tag}{parted}Insectile Aberration", "set": isd},
        {"name": f"Fire {tag}{parted}Ice", "set": apc},
        {"name": f"Delver {tag}{parted}Insectile Aberration (Showcase)"},
    ]
    told = await find(buyer, *fronts, *wholes, game="magic")
    assert {one["status"] for one in told} == {"resolved"}
    ids = [one["product_id"] for one in told]
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3
    assert told[3]["availability"]["min_price"] == 2
    basket = {"cards": [*wholes, {"name": f"Delver {tag}{parted}x", "any_printing": True}]}
    split = (await buyer.post("/api/discovery/basket", json=basket | {"game": "magic"})).json()
    bought = [item["index"] for parcel in split["parcels"] for item in parcel["items"]]
    reasons = {one["index"]: one["reason"] for one in split["unavailable"]}
    assert (bought, reasons) == (
        [0],
        {1: "no_offer", 2: "no_offer", 3: "not_enough_copies"},
    )


async def test_references_and_what_they_mean(a_seller, catalog, tag):
    base, gym = f"Base {tag}", f"Gym {tag} Heroes"
    await catalog(
        (f"Évoli {tag}", base, "51/64", "Normal"),
        (f"Évoli {tag}", gym, "TG05", "Normal"),
        (f"Évoli {tag}", gym, "TG05", "Reverse Holofoil"),
        (f"Évoli {tag} (Master Ball Pattern)", gym, "7", "Holofoil"),
        (f"Évoli-ex {tag}", base, "9/64", "Holofoil"),
    )
    buyer = await a_seller()
    name = f"evoli {tag}"
    cases = [
        # (reference, status, total)
        ({"name": name, "number": "051/64"}, "resolved", 1),
        ({"name": name, "number": "51"}, "resolved", 1),
        ({"name": name, "number": "51/65"}, "no_match", 0),
        ({"name": name, "number": "5"}, "no_match", 0),
        ({"name": name, "number": "TG5"}, "candidates", 2),
        ({"name": name, "number": "TG05", "finish": "reverse holo"}, "resolved", 1),
        ({"name": name, "number": "TG05", "finish": "Reverse Holofoil"}, "resolved", 1),
        ({"name": name, "set": f"gym {tag}"}, "candidates", 3),
        ({"name": name, "set": base}, "resolved", 2),
        ({"name": name, "set": "nowhere"}, "no_match", 0),
        ({"name": name, "finish": "master ball"}, "resolved", 1),
        ({"name": f"{tag} EVOLI"}, "candidates", 5),
        ({"name": f"Évoli {tag} - 051/64"}, "resolved", 1),
        ({"name": f"evoli ex {tag}"}, "resolved", 1),
        ({"name": f"{tag} ball mas"}, "resolved", 1),
        ({"name": "!?"}, "no_match", 0),
    ]
    found = await find(buyer, *(reference for reference, _, _ in cases))
    told = [(one["query"], one["status"], one["total"]) for one in found]
    assert told == cases


@pytest.mark.parametrize("finish", [None, "Holofoil"])
async def test_a_pattern_is_found_as_finish_as_it_is_in_the_name(a_seller, catalog, tag, finish):
    name, base = f"Pikachu {tag}", f"Base {tag}"
    patterns = ("Master Ball Pattern", "Poke Ball Pattern", "Cosmos Holo")
    await catalog(
        (name, base, "25/165", finish),
        *((f"{name} ({pattern})", base, "25/165", finish) for pattern in patterns),
        (f"{name} ex (Master Ball Pattern)", base, "26/165", finish),
    )
    buyer = await a_seller()
    for pattern in patterns:
        for number in ({}, {"number": "25/165"}):
            inside, beside = await find(
                buyer,
                {"name": f"{name} ({pattern})", **number},
                {"name": name, "finish": pattern.lower(), **number},
            )
            assert inside["status"] == beside["status"] == "resolved", pattern
            assert inside["product_id"] == beside["product_id"]
    [none] = await find(buyer, {"name": name, "finish": "Energy Symbol Pattern"})
    assert none["status"] != "resolved"


async def test_an_exact_name_with_every_given_field_exact_is_meant(a_seller, catalog, tag):
    base = f"Base {tag}"
    await catalog(
        (f"Mew {tag}", base, "8/64", "Holofoil"),
        (f"Mewtwo {tag}", base, "8/102", "Holofoil"),
        (f"Mew {tag} ex", f"{base} II", "8", "Holofoil"),
    )
    buyer = await a_seller()
    [loose, whole, exact, first] = await find(
        buyer,
        {"name": f"mew {tag}", "number": "8"},
        {"name": f"mew {tag}", "set": base, "number": "8"},
        {"name": f"Mew {tag}"},
        {"name": tag},
    )
    for found in (loose, whole, exact):
        assert found["status"] == "resolved", found
    assert (loose["total"], exact["total"]) == (3, 3)
    assert first["status"] == "candidates"
    assert first["candidates"][0]["name"].startswith("Mew ")


async def test_candidates_are_at_most_ten_and_the_total_counts_all(a_seller, catalog, tag):
    await catalog(*((f"Pika {tag}", f"Set {n} {tag}", str(n), "Normal") for n in range(14)))
    buyer = await a_seller()
    for reference in ({"name": f"Pika {tag}"}, {"name": f"pika {tag}", "set": tag}):
        [found] = await find(buyer, reference)
        assert (found["status"], found["total"], found["truncated"]) == ("candidates", 14, True)
        assert len({one["product_id"] for one in found["candidates"]}) == 10


async def test_typos_give_candidates_and_never_an_answer(a_seller, catalog, tag):
    await catalog((f"Charizard {tag}", f"Base {tag}", "4/102", "Holofoil"))
    buyer = await a_seller()
    typed = ("Charizrad", "Charzard", "Charizardd", "charisart", "Charizard")
    found = await find(buyer, *({"name": f"{word} {tag}", "number": "4"} for word in typed))
    assert [one["status"] for one in found] == ["candidates"] * 4 + ["resolved"]
    for one in found[:4]:
        assert [shown["name"] for shown in one["candidates"]] == [f"Charizard {tag}"]
        assert (one["product_id"], one["availability"], one["total"]) == (None, None, 1)
    assert [one["status"] for one in await find(buyer, {"name": f"Blastoise {tag}x"})] == [
        "no_match"
    ]


@pytest.mark.night
async def test_a_miss_names_near_printings_and_says_whether_somebody_holds_it(
    a_seller, a_shop, catalog, tag, service
):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil"), (name, f"Gym {tag}", "5/130", "Holofoil"))
    buyer = await a_seller()
    asked = {"name": name, "number": "4"}

    async def told():
        [found] = await find(buyer, asked)
        assert (found["status"], found["availability"]) == ("resolved", None)
        [near] = found["fallback"]["nearby_printings"]
        assert (near["name"], near["number"]) == (name, "5/130")
        return found["fallback"]["in_network_unexposed"]

    assert await told() is False
    shop = await a_shop("Alpha", a_card(1, name, base, "4/102"), network_published=False)
    assert await told() is True
    await change(service, shop, suspended=True)
    assert await told() is False
    await change(service, shop, suspended=False, plan="lapsed")
    assert await told() is False


@pytest.mark.night
async def test_a_callers_own_stock_is_neither_hidden_nor_special(a_shop, catalog, tag, service):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil"))
    shop = await a_shop("Alpha", a_card(1, name, base, "4/102", price="3.00"))
    asked = {"name": name}
    [found] = await find(shop, asked)
    assert found["owned_by_caller"] is True
    assert found["availability"]["sellers"][0]["store_name"] == "Alpha"
    await change(service, shop, network_consent=False)
    [found] = await find(shop, asked)
    assert (found["owned_by_caller"], found["availability"]) == (False, None)
    assert found["fallback"]["in_network_unexposed"] is False


async def test_withdrawn_consent_suspension_and_lapse_hold_for_the_next_answer(
    a_seller, a_shop, catalog, tag, service, monkeypatch
):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil"))
    shop = await a_shop("Alpha", a_card(1, name, base, "4/102"))
    buyer = await a_seller()

    async def offered() -> bool:
        [found] = await find(buyer, {"name": name})
        return found["availability"] is not None

    assert await offered()
    for off, on in (
        ({"network_consent": False}, {"network_consent": True}),
        ({"network_published": False}, {"network_published": True}),
        ({"suspended": True}, {"suspended": False}),
        ({"plan": "lapsed"}, {"plan": "founder"}),
        (
            {"plan": "trial", "trial_ends_at": clock.now() - timedelta(seconds=1)},
            {"trial_ends_at": clock.now() + timedelta(hours=1)},
        ),
    ):
        await change(service, shop, **off)
        assert not await offered(), off
        await change(service, shop, **on)
        assert await offered(), on


@pytest.mark.night
async def test_offers_follow_the_stock_and_nothing_else_is_written(
    a_seller, a_shop, catalog, tag, service
):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil"), (f"Mew {tag}", base, "8", "Holofoil"))
    rows = [a_card(1, name, base, "4/102", price="3.00"), a_card(2, f"Mew {tag}", base, "8")]
    shop = await a_shop("Alpha", *rows)
    versions = "SELECT product_id, xmin::text FROM network_offer WHERE seller_id = :id ORDER BY 1"
    before = await service.sql(shop.id, versions, id=shop.id)
    await shop.import_csv(a_csv(rows[0] | {"TCG Marketplace Price": "2.50"}, rows[1]))
    await OFFERS.work_off(service.work, shop.id)
    after = await service.sql(shop.id, versions, id=shop.id)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    [found] = await find(await a_seller(), {"name": name})
    assert found["availability"]["min_price"] == 2.5
    await shop.import_csv(a_csv(rows[1]))
    await OFFERS.work_off(service.work, shop.id)
    [found] = await find(shop, {"name": name})
    assert found["availability"] is None


@pytest.mark.night
async def test_links_are_the_sellers_wrapped_by_the_operators(
    a_seller, a_shop, catalog, tag, service, settings
):
    name, base = f"Charizard {tag}", f"Base {tag}"
    await catalog((name, base, "4/102", "Holofoil", 41))
    await a_shop(
        "Alpha",
        a_card(1, name, base, "4/102"),
        listing_url_template="https://shop.example/p/{marketplace_product_id}?a=1&b=2",
    )
    [found] = await find(await a_seller(), {"name": name})
    [offer] = found["availability"]["sellers"]
    assert offer["buy_url"] == "https://shop.example/p/41?a=1&b=2"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({}, "invalid_payload", "either"),
        ({"name": "Mew", "cards": []}, "invalid_payload", "either"),
        ({"cards": []}, "invalid_payload", "cards"),
        ({"cards": {"name": "Mew"}}, "invalid_payload", "cards"),
        ({"cards": ["Mew"]}, "invalid_payload", "cards[0]"),
        ({"cards": [{"name": "Mew"}, {"set": "x"}]}, "invalid_payload", "cards[1].name"),
        ({"cards": [{"name": 5}]}, "invalid_payload", "cards[0].name"),
        ({"name": "Mew", "set": 5}, "invalid_payload", "set"),
        ({"name": "Mew", "game": 5}, "invalid_payload", "game"),
        ({"name": "M"}, "name_too_short", "name"),
        ({"cards": [{"name": "Mew"}, {"name": " M "}]}, "name_too_short", "cards[1].name"),
        ({"cards": [{"name": "Mew"}] * 26}, "too_many_references", "25"),
        ([], "invalid_payload", "object"),
    ],
)
async def test_a_body_of_the_wrong_shape_names_the_place(a_seller, body, code, words):
    answer = await (await a_seller()).post(PATH, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert words in answer.json()["error"]


async def test_an_unknown_game_matches_nothing(a_seller):
    seller = await a_seller()
    [found] = await find(seller, {"name": "Mew"}, game="chess")
    assert (found["status"], found["total"]) == ("no_match", 0)


@pytest.mark.parametrize(
    "name",
    ["'; DROP TABLE product; --", "\\", "a' & 'b", "a:* | b", "(((", "%%", "\u202ea b", "x" * 290],
)
async def test_hostile_names_match_nothing(a_seller, name):
    [found] = await find(await a_seller(), {"name": f"{name}  zz", "set": name, "finish": name})
    assert found["status"] == "no_match"
