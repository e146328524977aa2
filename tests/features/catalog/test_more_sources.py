"""`cardsync catalog import` of LorcanaJSON, Flesh and Blood Cards, YGOPRODeck, OPTCG, CardTrader and
Cardmarket, each in a small file of its own; and the ids that a product has of all of them.
"""

import json
import uuid

import pytest
from click.testing import CliRunner

from cardsync.cli import program
from cardsync.platform.logs import setup_logging


@pytest.fixture
def run(in_the_environment):
    """`run(path, …)` is `cardsync catalog import`; it returns what is said."""

    def imported(path, *words):
        done = CliRunner().invoke(program, ["catalog", "import", str(path), *words])
        assert done.exit_code == 0, done.output
        return done.stdout.strip()

    yield imported
    setup_logging("warning", "json")


@pytest.fixture
def products(query, a_set):
    def read(columns="product_name, number, finish", set_name=None):
        sql = f"""SELECT {columns} FROM product WHERE set_name = %s
                  ORDER BY product_name, number, finish, id"""
        return query(sql, set_name or a_set)

    return read


@pytest.fixture
def elsewhere(query, a_set):
    """The ids of each product of the test's set."""

    def read():
        return query(
            """SELECT p.product_name, coalesce(p.finish, ''), e.kind, e.id
                 FROM product p JOIN product_elsewhere e ON e.product_id = p.id
                WHERE p.set_name = %s ORDER BY 1, 2, 3, 4""",
            a_set,
        )

    return read


@pytest.fixture
def number():
    """A number that no other test has."""
    return uuid.uuid4().int % 10**12 * 10


def lorcana(a_set, number, **more):
    card = {
        "id": 1, "fullName": "Elsa - Snow Queen", "number": 41, "rarity": "Uncommon", "setCode": "1",
        "fullIdentifier": "41/204 • EN • 1", "foilTypes": ["None", "Silver"],
        "allowedInTournamentsFromDate": "2023-09-08",
        "images": {"full": "https://lorcana.example/41.jpg"},
        "externalLinks": {
            "tcgPlayerId": number + 1, "cardmarketId": number + 2, "cardTraderId": number + 3
        },
    }  # fmt: skip
    return {
        "metadata": {"formatVersion": "2.4.0", "language": "en"},
        "sets": {"1": {"name": a_set, "type": "expansion", "hasAllCards": True}},
        "cards": [card, *({**card, **one} for one in more.get("cards", []))],
    }


def test_lorcanajson(run, tmp_path, a_set, products, number, elsewhere, query):
    path = tmp_path / "allCards.json"
    others = [
        {
            "fullName": "Hades - King", "fullIdentifier": "205/204 • EN • 1", "rarity": "Enchanted",
            "foilTypes": ["Lava"], "externalLinks": {},
        },
        {
            "fullName": "Stitch", "fullIdentifier": "1 TFC • EN • 1/P1", "promoGrouping": "P1",
            "foilTypes": ["None"], "externalLinks": {"tcgPlayerId": number + 4},
        },
        {"fullName": "Pluto", "fullIdentifier": "24a/204 • EN • 1", "externalLinks": {}},
        {"fullName": "Nobody", "setCode": "77"},
    ]  # fmt: skip
    path.write_text(json.dumps(lorcana(a_set, number, cards=others)))
    assert "6 products" in (said := run(path))
    assert "1 record was skipped" in said
    assert products("product_name, number, finish, marketplace_product_id") == [
        ("Elsa - Snow Queen", "41/204", "Cold Foil", number + 1),
        ("Elsa - Snow Queen", "41/204", "Normal", number + 1),
        ("Hades - King (Enchanted)", "205/204", None, None),
        ("Pluto", "24a/204", "Cold Foil", None),
        ("Pluto", "24a/204", "Normal", None),
    ]
    promo = query(
        "SELECT set_name, number, finish FROM product WHERE marketplace_product_id = %s", number + 4
    )
    assert promo == [("Disney Lorcana Promo Cards", "1/P1", "Normal")]
    assert elsewhere() == [
        ("Elsa - Snow Queen", finish, kind, str(number + n))
        for finish in ("Cold Foil", "Normal")
        for kind, n in (("cardmarket", 2), ("cardtrader", 3))
    ]


def test_flesh_and_blood_cards(run, tmp_path, a_set, products, number):
    def printing(id, edition, foiling, **more):
        return {
            "unique_id": "x", "set_printing_unique_id": "y", "id": id, "set_id": "TST",
            "edition": edition, "foiling": foiling, "rarity": "C", "art_variations": [],
            "image_url": "https://fab.example/a.png", "tcgplayer_product_id": str(number),
        } | more  # fmt: skip

    cards = [
        {
            "unique_id": "a", "name": "Snatch", "pitch": "1",
            "printings": [
                printing("TST167", "A", "S"),
                printing("TST167", "U", "R", tcgplayer_product_id=None),
                printing("TST167", "N", "C", art_variations=["EA"]),
            ],
        },
        {
            "unique_id": "b", "name": "Boltyn", "pitch": "",
            "printings": [printing("TST001", "N", "G", rarity="V", art_variations=["FA"])],
        },
        {"unique_id": "c", "name": "Lost", "printings": [printing("OLD001", "N", "S", set_id="OLD")]},
    ]  # fmt: skip
    (tmp_path / "card.json").write_text(json.dumps(cards))
    (tmp_path / "set.json").write_text(json.dumps([{"id": "TST", "name": a_set, "printings": []}]))
    assert "1 record was skipped" in run(tmp_path / "card.json")
    expected = [
        ("Boltyn (Marvel)", "TST001", "Gold Foil"),
        ("Snatch (Red)", "TST167", "1st Edition Normal"),
        ("Snatch (Red)", "TST167", "Unlimited Edition Rainbow Foil"),
        ("Snatch (Red) (Extended Art)", "TST167", "Cold Foil"),
    ]
    assert products() == expected
    assert "0 new, 0 changed" in run(tmp_path, "--format", "flesh-and-blood-cards")
    (tmp_path / "set.json").unlink()
    failed = CliRunner().invoke(program, ["catalog", "import", str(tmp_path / "card.json")])
    assert (failed.exit_code, "card.json and set.json" in failed.stderr) == (1, True)


def test_ygoprodeck(run, tmp_path, a_set, products):
    def of(code, rarity, **more):
        return {"set_name": a_set, "set_code": code, "set_rarity": rarity} | more

    cards = [
        {
            "id": 1, "name": "Dark Magician", "frameType": "normal",
            "card_sets": [
                of("TST-EN001", "Ultra Rare"),
                of("TST-EN002", "Secret Rare"),
                of("TST-EN002", "Starlight Rare"),
                of("TST-EN003", "Common", set_edition="1st Edition"),
                of("TST-EN003", "Common", set_edition="Unlimited"),
            ],
        },
        {"id": 2, "name": "Not Yet", "frameType": "normal"},
    ]  # fmt: skip
    path = tmp_path / "cardinfo.json"
    path.write_text(json.dumps({"data": cards}))
    assert "skipped" not in run(path)
    assert products("product_name, number, finish, set_code") == [
        ("Dark Magician", "TST-EN001", None, "TST"),
        ("Dark Magician", "TST-EN003", "1st Edition", "TST"),
        ("Dark Magician", "TST-EN003", "Unlimited", "TST"),
        ("Dark Magician (Secret Rare)", "TST-EN002", None, "TST"),
        ("Dark Magician (Starlight Rare)", "TST-EN002", None, "TST"),
    ]


def test_one_piece_of_optcg(run, tmp_path, a_set, products):
    card = {
        "card_name": "Roronoa Zoro (001)", "set_name": a_set, "set_id": "OP-01", "rarity": "L",
        "card_set_id": "OP01-001", "card_image_id": "OP01-001",
        "card_image": "https://optcg.example/OP01-001.jpg",
    }  # fmt: skip
    cards = [
        card,
        card | {"card_name": "Roronoa Zoro (001) (Parallel)", "card_image_id": "OP01-001_p1"},
        card | {"card_name": "Nami (Film) (002)", "card_set_id": "OP01-016", "rarity": "R"},
    ]
    (tmp_path / "sets.json").write_text(json.dumps(cards))
    (tmp_path / "promos.json").write_text(json.dumps([card | {"card_set_id": "P-001"}]))
    run(tmp_path, "--format", "optcg")
    assert products("product_name, number, rarity") == [
        ("Nami (Film) (002)", "OP01-016", "Rare"),
        ("Roronoa Zoro", "OP01-001", "Leader"),
        ("Roronoa Zoro", "P-001", "Leader"),
        ("Roronoa Zoro (Parallel)", "OP01-001", "Leader"),
    ]


@pytest.fixture
def scryfall(run, tmp_path, a_set, number):
    """Scryfall's card in two finishes is in the catalog; its ids."""
    ids = {"id": str(uuid.uuid4()), "cardmarket_id": number + 2, "tcgplayer_id": number + 1}
    card = {
        "object": "card", "name": "Opt", "set_name": a_set, "set": "xln", "lang": "en",
        "collector_number": "65", "rarity": "common", "finishes": ["nonfoil", "foil"],
    }  # fmt: skip
    path = tmp_path / "default-cards.json"
    path.write_text(json.dumps([card | ids]))
    assert "2 new" in run(path)
    return ids


def blueprints(folder, a_set, *found):
    folder.mkdir()
    expansions = [{"id": 7, "game_id": 1, "code": "xln", "name": a_set}]
    (folder / "expansions.json").write_text(json.dumps(expansions))
    (folder / "7.json").write_text(json.dumps(list(found)))
    return folder


def test_blueprints_of_cardtrader_give_their_ids_to_all_finishes(
    run, tmp_path, a_set, scryfall, number, elsewhere, products
):
    opt = {
        "id": number + 3, "name": "Opt", "version": None, "game_id": 1, "category_id": 1,
        "expansion_id": 7, "fixed_properties": {"collector_number": "065", "mtg_rarity": "Common"},
        "scryfall_id": scryfall["id"], "card_market_ids": [number + 2], "tcg_player_id": number + 1,
    }  # fmt: skip
    new = {"id": number + 4, "name": "Ponder", "scryfall_id": None, "card_market_ids": []}
    folder = blueprints(
        tmp_path / "cardtrader",
        # Their own name of the set: the ids tell.
        f"{a_set} of theirs",
        opt,
        opt | new | {"tcg_player_id": None},
        opt | {"expansion_id": 8},
    )
    said = run(folder, "--format", "cardtrader")
    assert "1 new" in said
    assert "1 record was skipped" in said
    assert elsewhere() == [
        ("Opt", finish, kind, id)
        for finish in ("Foil", "Normal")
        for kind, id in (
            ("cardmarket", str(number + 2)),
            ("cardtrader", str(number + 3)),
            ("scryfall", scryfall["id"]),
        )
    ]
    assert products("product_name, number", f"{a_set} of theirs") == [("Ponder", "065")]
    assert "0 new" in run(folder, "--format", "cardtrader")


def test_mtgjson_gives_its_ids_to_what_scryfall_described(
    run, tmp_path, a_set, scryfall, elsewhere
):
    card = {
        "uuid": str(uuid.uuid4()), "name": "Opt", "number": "65", "rarity": "common",
        "language": "English", "finishes": ["nonfoil", "foil"], "keyruneCode": "XLN",
        "identifiers": {"scryfallId": scryfall["id"]},
    }  # fmt: skip
    found = {"name": a_set, "code": "XLN", "cards": [card], "tokens": [], "baseSetSize": 1}
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps({"meta": {}, "data": {"XLN": found}}))
    assert "0 new" in run(path)
    assert ("Opt", "Foil", "mtgjson", card["uuid"]) in elsewhere()
    assert ("Opt", "Normal", "mtgjson", card["uuid"]) in elsewhere()


def test_a_shared_id_does_not_join_two_names(run, tmp_path, a_set, scryfall, number, products):
    other = {
        "id": number + 3, "name": "Ponder", "expansion_id": 7, "fixed_properties": {},
        "scryfall_id": scryfall["id"], "game_id": 1, "version": None,
    }  # fmt: skip
    run(blueprints(tmp_path / "cardtrader", a_set, other), "--format", "cardtrader")
    assert products("product_name, finish") == [
        ("Opt", "Foil"), ("Opt", "Normal"), ("Ponder", "Sealed")
    ]  # fmt: skip


def test_cardmarkets_list_gives_ids_and_makes_no_products(
    run, tmp_path, a_set, scryfall, number, elsewhere, products
):
    folder = tmp_path / "cardmarket"
    folder.mkdir()

    def product(id, name, category="Magic Single", expansion=5):
        return {
            "idProduct": id, "name": name, "idCategory": 1, "categoryName": category,
            "idExpansion": expansion, "idMetacard": 1, "dateAdded": "2017-09-29 00:00:00",
        }  # fmt: skip

    listed = [
        product(number + 5, "Opt"),
        product(number + 6, "Ponder"),
        product(number + 7, "Opt", "Magic Booster"),
        product(number + 8, "Opt", expansion=6),
    ]
    (folder / "products_singles_1.json").write_text(json.dumps({"version": 1, "products": listed}))
    sets = [{"idExpansion": 5, "enName": a_set, "abbreviation": "XLN"}]
    (folder / "expansions.json").write_text(json.dumps({"expansion": sets}))
    said = run(folder / "products_singles_1.json")
    assert "0 new, 2 changed" in said
    assert "1 record was skipped" in said
    assert [one for one in elsewhere() if one[3] == str(number + 5)] == [
        ("Opt", finish, "cardmarket", str(number + 5)) for finish in ("Foil", "Normal")
    ]
    assert len(products()) == 2


def test_an_own_catalog_has_ids_too(run, tmp_path, a_set, elsewhere, number):
    path = tmp_path / "own.csv"
    path.write_text(
        "game,set_name,product_name,number,finish,cardmarket_id,mtgjson_id\n"
        f"magic,{a_set},Opt,65,Foil,{number},{number + 1}\n"
    )
    run(path)
    assert elsewhere() == [
        ("Opt", "Foil", "cardmarket", str(number)), ("Opt", "Foil", "mtgjson", str(number + 1))
    ]  # fmt: skip
