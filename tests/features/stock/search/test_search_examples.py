"""Every token that the interface and the language's own definition name, with the rows that it
finds.
"""

import pytest

from builders import SellerBuilder, a_csv, a_row
from cards_builder import a_list, a_place, card_ids, found

POKEMON = {"line": "Pokemon", "set": "Base Set"}
ROWS = [
    a_row(1, line="Pokemon", set="Base Set (Shadowless)", name="Charizard", number="006/165",
          price="9.00", market="8.00"),
    a_row(2, **POKEMON, name="Pikachu (Prerelease)", number="6/102",
          condition="Lightly Played Holofoil", price="5.00", quantity=3),
    a_row(3, **POKEMON, name="Eevee (Staff)", number="12", price="1.00", quantity=5,
          condition="Moderately Played Reverse Holofoil"),
    a_row(4, **POKEMON, name="Mew [Winner]", number="TG05", quantity=8,
          condition="Heavily Played 1st Edition Holofoil"),
    a_row(5, **POKEMON, name="Vaporeon (No Symbol)", condition="Damaged Limited"),
    a_row(6, **POKEMON, name="Blastoise (1999-2000)", number="60", condition="Near Mint Unlimited"),
    a_row(7, line="Pokemon Japan", name="Pidgey (No Rarity)", condition="Near Mint - Japanese",
          price="", market=""),
    a_row(8, **POKEMON, name="Abra (No Rarity)"),
    a_row(9, line="Magic", name="Niv-Mizzet, Parun", condition="Near Mint Foil", set="Dominaria"),
    a_row(10, line="Magic", name="Urza's Tower", condition="Unopened"),
    a_row(11, line="Magic", name="Gone Tower", quantity=0),
]  # fmt: skip
ALL = list(range(1, 11))


def but(*ids: int) -> list[int]:
    return [id for id in ALL if id not in ids]


@pytest.fixture(scope="module")
async def seller(service):
    seller = await SellerBuilder(service)(lines=["pokemon", "pokemon_japan", "magic"])
    await seller.import_csv(a_csv(*ROWS))
    ids = await card_ids(seller)
    await a_list(seller, "My Binder", *(ids[id] for id in (1, 2, 9, 11)), slug="binder")
    for id, box, slot, quantity in ((1, 3, 12, 1), (2, 3, 1, 2), (3, 4, 12, 6)):
        await a_place(seller, ids[id], box, slot, quantity)
    set_rule = "UPDATE pricing_rule SET name = 'Premium', query = 'pikachu' WHERE seller_id = :s"
    await service.sql(seller.id, set_rule, s=seller.id)
    return seller


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # The interface's tokens.
        ("list:binder", [1, 2, 9]),
        ("list:binder is:gone", [11]),
        ("price>=5", [1, 2]),
        ("price>=5 cond:NM", [1]),
        ("qty<=3 price<=1", [5, 6, 8, 9, 10]),
        ("cond:NM", [1, 6, 7, 8, 9]),
        ("box:3", [1, 2]),
        ("loc:3-12", [1]),
        ("is:unshelved", but(1, 2, 3)),
        ("is:location-drift", [3]),
        ("v:shadowless", [1]),
        ("v:prerelease", [2]),
        ("v:staff", [3]),
        ("v:winner", [4]),
        ("v:No Symbol", [5]),
        ('v:"No Symbol"', [5]),
        ("v:1999-2000", [6]),
        ("v:4th print", [6]),
        ("game:pokemon_japan v:No Rarity", [7]),
        ("v:No Rarity", [7]),
        # The language's own.
        ("", ALL),
        ("Niv-Mizzet", [9]),
        ("urzas", [10]),
        ("Urza's", [10]),
        ("PIKACHÚ", [2]),
        ("niv or pik eevee", [9]),
        ("(niv or pik) parun", [9]),
        ('"niv or"', []),
        ("-price>5", but(1)),
        ("not:foil", [1, 5, 6, 7, 8, 10]),
        ("-is:foil", [1, 5, 6, 7, 8, 10]),
        ("cn:6", [1, 2]),
        ("cn:006/165", [1]),
        ("cn:6/165", [1]),
        ("cn:6/102", [2]),
        ("number>=12", [3, 6]),
        ("number:..11", [1, 2, 5, 7, 8, 9, 10]),
        ("cond<=LP", [1, 2, 6, 7, 8, 9]),
        ("cond>LP", [3, 4, 5]),
        ("printing:holofoil", [2]),
        ("f:reverse", [3]),
        ("finish:1st", [4]),
        ("f:limited", [5]),
        ("f:unlimited", [6]),
        ("f:foil", [9]),
        ("f:holo", [2, 3, 4]),
        ("lang:ja", [7]),
        ("language:Japanese", [7]),
        ("price!=9", but(1, 7)),
        ("market<=8 market>2", [1]),
        ("qty:3..5", [2, 3]),
        ("qty:5..", [3, 4]),
        ("qty:..1 game:magic", [9, 10]),
        ("unshelved>=5", [4]),
        ("cost>0", []),
        ("age<1", ALL),
        ("unsold<1", ALL),
        ("unsold>=1", []),
        ("has:cost", []),
        ("-has:cost", ALL),
        ("is:stamped", [2, 3, 4]),
        ("is:priced", but(7)),
        ("is:unpriced", [7]),
        ("is:sealed", [10]),
        ("is:held or is:pinned or is:custom", []),
        ("has:location", [1, 2, 3]),
        ("has:list", [1, 2, 9]),
        ("has:rule", [2]),
        ("rule:Premium", [2]),
        ("sku:1|9", [1, 9]),
        ("set:base -set=\"base set\"", [1]),
        ("s:dom", [7, 9, 10]),
        ("set!=Dominaria game:magic", [10]),
    ],
)  # fmt: skip
async def test_a_token_finds_what_it_says(seller, text, ids):
    assert await found(seller, text) == ids
