"""`cardsync catalog import` of what other projects publish: each form in a small file of its own,
broken records, newer editions, two sources of one printing; and `cardsync catalog match`.
"""

import csv
import gzip
import json
import lzma

import psycopg
import pytest
from click.testing import CliRunner

from builders import a_csv, a_row
from cardsync.cli import program
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from world import printed


@pytest.fixture
def run(in_the_environment):
    """`run("import", path, …)` is `cardsync catalog import` against the tests' database."""
    yield lambda *words: CliRunner().invoke(program, ["catalog", *map(str, words)])
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
def products(query, a_set):
    def read(columns="product_name, number, finish, marketplace_product_id"):
        sql = f"SELECT {columns} FROM product WHERE set_name = %s ORDER BY product_name, number, finish"
        return query(sql, a_set)

    return read


def listing(a_set, n):
    """An id of the marketplace that no other test's product has."""
    return int(a_set[-8:], 16) * 10 + n


def mtgjson(a_set, **more):
    card = {
        "name": "Opt", "number": "65", "rarity": "common", "language": "English",
        "finishes": ["nonfoil", "foil"],
        "identifiers": {"tcgplayerProductId": str(listing(a_set, 1))},
        "availability": ["paper"], "keyruneCode": "XLN",
    }  # fmt: skip
    faces = [
        card
        | {
            "name": "Fire // Ice",
            "number": "2",
            "side": side,
            "finishes": ["nonfoil"],
            "identifiers": {"tcgplayerProductId": str(listing(a_set, 4))},
        }
        for side in "ab"
    ]
    etched = card | {
        "number": "7", "finishes": ["etched"],
        "identifiers": {
            "tcgplayerProductId": str(listing(a_set, 5)),
            "tcgplayerEtchedProductId": str(listing(a_set, 2)),
        },
    }  # fmt: skip
    box = {
        "name": "Booster Box", "identifiers": {"tcgplayerProductId": str(listing(a_set, 3))}
    }  # fmt: skip
    found = {
        "name": a_set, "code": "TST", "cards": [card, *faces, etched], "sealedProduct": [box],
        "tokens": [], "baseSetSize": 3,
    }  # fmt: skip
    return {"meta": {"version": "5"}, "data": {"TST": found | more}}


def mtgjson_products(a_set):
    return [
        ("Booster Box", None, "Sealed", listing(a_set, 3)),
        ("Fire // Ice", "2", "Normal", listing(a_set, 4)),
        ("Opt", "65", "Foil", listing(a_set, 1)),
        ("Opt", "65", "Normal", listing(a_set, 1)),
        ("Opt (Foil Etched)", "7", "Foil", listing(a_set, 2)),
    ]


@pytest.mark.night
@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("json", bytes), ("json.gz", gzip.compress), ("json.xz", lzma.compress)],
)
def test_mtgjson_is_read_packed_or_not(run, tmp_path, a_set, products, suffix, pack):
    path = tmp_path / f"AllPrintings.{suffix}"
    path.write_bytes(pack(json.dumps(mtgjson(a_set)).encode()))
    assert "5 new" in printed(run("import", path))
    assert products() == mtgjson_products(a_set)


def test_scryfall(run, tmp_path, a_set, products):
    card = {
        "object": "card", "name": "Opt", "set_name": a_set, "set": "xln", "lang": "en",
        "collector_number": "065", "rarity": "common", "finishes": ["nonfoil", "foil"],
        "tcgplayer_id": listing(a_set, 1), "digital": False,
    }  # fmt: skip
    path = tmp_path / "default-cards.json"
    path.write_text(json.dumps([card, card | {"digital": True, "name": "Online"}]))
    assert "2 new" in printed(run("import", path))
    assert products() == [
        ("Opt", "065", finish, listing(a_set, 1)) for finish in ("Foil", "Normal")
    ]
    assert products("set_code, number_key")[0] == ("XLN", "65")


def test_pokemon_tcg_data_with_its_sets_beside(run, tmp_path, a_set, products):
    for folder in ("sets", "cards/en"):
        (tmp_path / folder).mkdir(parents=True)
    sets = [{"id": "base1", "name": a_set, "printedTotal": 102, "ptcgoCode": "BS"}]
    (tmp_path / "sets/en.json").write_text(json.dumps(sets))
    card = {
        "id": "base1-4",
        "name": "Charizard",
        "supertype": "Pokémon",
        "number": "4",
        "rarity": "Rare Holo",
    }
    (tmp_path / "cards/en/base1.json").write_text(json.dumps([card]))
    assert "1 new" in printed(run("import", tmp_path))
    assert products("product_name, number, set_code, finish") == [
        ("Charizard", "4/102", "BS", None)
    ]
    # One file of that folder finds the sets, too.
    assert "0 new" in printed(run("import", tmp_path / "cards/en/base1.json"))


def test_pokemon_tcg_data_as_its_api_answers(run, tmp_path, a_set, products):
    card = {
        "id": "x-4", "name": "Charizard", "supertype": "Pokémon", "number": "TG05", "rarity": "Rare",
        "set": {"id": "x", "name": a_set, "printedTotal": 102},
        "tcgplayer": {"prices": {"holofoil": {}, "reverseHolofoil": {}, "unheard": {}}},
    }  # fmt: skip
    (tmp_path / "page.json").write_text(json.dumps({"data": [card], "page": 1}))
    assert "2 new" in printed(run("import", tmp_path / "page.json"))
    assert [row[1:3] for row in products()] == [("TG05", "Holofoil"), ("TG05", "Reverse Holofoil")]


@pytest.mark.parametrize(
    ("variants", "finishes"),
    [
        ({"normal": True, "reverse": True, "holo": False}, ["Normal", "Reverse Holofoil"]),
        ({"holo": True, "firstEdition": True}, ["1st Edition Holofoil", "Unlimited Holofoil"]),
        ([{"type": "holo"}, {"type": "lenticular"}], ["Holofoil"]),
        (None, [None]),
    ],
)
def test_tcgdex(run, tmp_path, a_set, products, variants, finishes):
    card = {
        "id": "x-4", "localId": "4", "name": "Charizard", "rarity": "Rare", "variants": variants,
        "set": {"id": "x", "name": a_set, "cardCount": {"official": 64, "total": 64}},
        "thirdParty": {"tcgplayer": 42},
    }  # fmt: skip
    (tmp_path / "cards.json").write_text(json.dumps([card]))
    printed(run("import", tmp_path / "cards.json"))
    assert [row[1:] for row in products()] == [("4/064", finish, 42) for finish in finishes]


def test_a_set_of_tcgdex_in_japanese(run, tmp_path, a_set, products):
    found = {
        "id": "SV3a", "name": a_set, "cardCount": {"official": 62},
        "cards": [{"id": "SV3a-054", "localId": "054", "name": "ポケモンいれかえ"}],
    }  # fmt: skip
    (tmp_path / "set.json").write_text(json.dumps(found))
    printed(run("import", tmp_path / "set.json", "--game", "pokemon_japan"))
    assert products("game, product_name, number, language") == [
        ("pokemon_japan", "ポケモンいれかえ", "054/062", "ja")
    ]


def test_a_list_of_the_sets_of_tcgdex_lies_beside_them(run, tmp_path, a_set, products):
    count = {"official": 62, "total": 80}
    listed = {"id": "sv1", "name": a_set, "cardCount": count}
    card = {"id": "sv1-4", "localId": "4", "name": "Tarountula"}
    (tmp_path / "sets.json").write_text(json.dumps([listed]))
    (tmp_path / "sv1.json").write_text(json.dumps(listed | {"cards": [card]}))
    assert "skipped" not in printed(run("import", tmp_path, "--format", "tcgdex"))
    assert products("product_name, number") == [("Tarountula", "4/062")]


def test_a_format_that_no_source_has_is_told_in_one_sentence(run, tmp_path):
    (tmp_path / "x.json").write_text("[]")
    result = run("import", tmp_path / "x.json", "--format", "tcgdx")
    assert (result.exit_code, "'tcgdx' is not a known format" in result.stderr) == (1, True)


def tcgcsv(folder, a_set, *rows):
    (folder / "Groups.csv").write_text(f"groupId,name,abbreviation,categoryId\n77,{a_set},BLK,3\n")
    header = "productId,name,cleanName,categoryId,groupId,extRarity,extNumber,lowPrice,subTypeName"
    (folder / "ProductsAndPrices.csv").write_text("\n".join([header, *rows, ""]))


@pytest.mark.night
def test_tcgcsv(run, tmp_path, a_set, products):
    tcgcsv(
        tmp_path, a_set,
        "1,Snivy - 001/086 (Master Ball Pattern),Snivy,3,77,Common,001/086,0.1,Holofoil",
        "2,Booster Box,Booster Box,3,77,,,99.0,Normal",
    )  # fmt: skip
    assert "2 new" in printed(run("import", tmp_path / "ProductsAndPrices.csv"))
    assert products("product_name, finish, marketplace_product_id, name_key, sealed") == [
        ("Booster Box", "Sealed", 2, "booster box", True),
        ("Snivy - 001/086 (Master Ball Pattern)", "Holofoil", 1, "snivy", False),
    ]


def test_broken_records_are_skipped_and_listed(run, tmp_path, a_set, products):
    tcgcsv(
        tmp_path, a_set,
        "1,Snivy,Snivy,3,77,Common,001/086,0.1,Normal",
        "2,,Nameless,3,77,Common,002/086,0.1,Normal",
        "3,Lost,Lost,3,78,Common,003/086,0.1,Normal",
        "4,Chess,Chess,999,77,Common,004/086,0.1,Normal",
    )  # fmt: skip
    skipped = tmp_path / "skipped.csv"
    result = run("import", tmp_path, "--skipped", skipped)
    assert printed(result).endswith(
        "1 new, 0 changed, 0 provisional ones adopted; 3 records were skipped"
    )
    assert "skipped record 3 (3 Lost): group 78 is in no file of groups" in result.stderr
    written = list(csv.reader(skipped.open()))
    assert [row[1] for row in written[1:]] == [
        "name is missing",
        "group 78 is in no file of groups",
        "category 999 is not a known product line",
    ]
    assert len(products()) == 1


def test_a_broken_card_of_a_set_keeps_the_others(run, tmp_path, a_set, products):
    catalog = mtgjson(a_set)
    catalog["data"]["TST"]["cards"] += [{"number": "9"}, 5, {"name": ["Opt"], "number": "3"}]
    catalog["data"]["NO"] = {"cards": []}
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps(catalog))
    result = run("import", path)
    assert "4 records were skipped" in printed(result)
    assert "skipped set TST, record 5 (9): name is missing" in result.stderr
    assert "skipped set NO: its name is missing" in result.stderr
    assert products() == mtgjson_products(a_set)


@pytest.mark.parametrize(
    "cut",
    [lambda data: data[: len(data) // 2], lambda data: gzip.compress(data)[:-40]],
)
def test_half_a_file_writes_nothing(run, tmp_path, a_set, products, cut):
    data = cut(json.dumps(mtgjson(a_set)).encode())
    path = tmp_path / ("half.json.gz" if data[:2] == b"\x1f\x8b" else "half.json")
    path.write_bytes(data)
    result = run("import", path, "--format", "mtgjson")
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert path.name in result.stderr
    assert products() == []


def test_an_unknown_json_file_is_told_in_one_sentence(run, tmp_path):
    (tmp_path / "x.json").write_text('{"hello": []}')
    result = run("import", tmp_path / "x.json")
    assert (result.exit_code, "--format" in result.stderr) == (1, True)
    assert "Traceback" not in result.output


@pytest.mark.night
def test_the_same_file_again_writes_no_row(run, tmp_path, a_set, query):
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps(mtgjson(a_set)))
    printed(run("import", path))
    sql = (
        "SELECT id, ctid::text, xmin::text, xmax::text FROM product WHERE set_name = %s ORDER BY id"
    )
    before = query(sql, a_set)
    assert "0 new, 0 changed" in printed(run("import", path))
    assert query(sql, a_set) == before


@pytest.mark.night
def test_a_product_that_a_newer_edition_lacks_is_kept_and_marked(run, tmp_path, a_set, products):
    path = tmp_path / "AllPrintings.json"
    whole = mtgjson(a_set)
    path.write_text(json.dumps(whole))
    printed(run("import", path))
    cards = whole["data"]["TST"].pop("cards")
    path.write_text(
        json.dumps({"meta": {}, "data": {"TST": whole["data"]["TST"] | {"cards": cards[:1]}}})
    )
    assert "2 no longer named, kept and marked" in printed(run("import", path))
    marked = "product_name, vanished_at IS NOT NULL, finish"
    assert [row[:2] for row in products(marked)] == [
        ("Booster Box", False), ("Fire // Ice", True), ("Opt", False), ("Opt", False),
        ("Opt (Foil Etched)", True),
    ]  # fmt: skip
    whole["data"]["TST"]["cards"] = cards
    path.write_text(json.dumps(whole))
    assert "2 changed" in printed(run("import", path))
    assert not any(row[1] for row in products(marked))


def test_a_set_that_has_another_key_by_now_keeps_its_products(
    run, tmp_path, a_set, products, query, owner_url
):
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps(mtgjson(a_set)))
    printed(run("import", path))
    before = products("id, product_name, number, finish")
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        # As a version before this one stored them.
        connection.execute(
            "UPDATE product SET set_key = set_key || ' then', identity = md5(identity)"
            " WHERE set_name = %s",
            [a_set],
        )
    assert "0 new, 0 changed" in printed(run("import", path))
    assert products("id, product_name, number, finish") == before
    assert products("set_key, vanished_at")[0] == (" ".join(sorted(a_set.lower().split())), None)


def test_two_sources_of_one_printing_are_one_product(run, tmp_path, a_set, products):
    own = tmp_path / "own.csv"
    own.write_text(
        f"game,set_name,product_name,number,rarity,finish\nmagic,{a_set},Opt,65,common,Normal\n"
    )
    printed(run("import", own))
    [(first,)] = products("id")
    card = {
        "name": "Opt", "set_name": a_set, "set": "xln", "lang": "en", "collector_number": "065",
        "finishes": ["nonfoil"], "tcgplayer_id": listing(a_set, 1),
    }  # fmt: skip
    path = tmp_path / "default-cards.json"
    path.write_text(json.dumps([card]))
    assert "0 new, 1 changed" in printed(run("import", path))
    assert products("id, set_code, marketplace_product_id") == [(first, "XLN", listing(a_set, 1))]
    assert "0 new, 0 changed" in printed(run("import", path))
    assert "0 new, 0 changed" in printed(run("import", own))


@pytest.mark.night
async def test_a_provisional_product_is_adopted_by_another_projects_file(
    a_seller, settings, owner_url, tmp_path, a_set
):
    from cardsync.catalog.load_catalog import import_catalog

    seller = await a_seller()
    row = a_row(1, name="Opt", number="65", set=a_set)
    await seller.import_csv(a_csv(row))
    [before] = await seller.cards()
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps(mtgjson(a_set)))
    said = await import_catalog(seller.service.database, path, "auto", None, lambda _: None)
    assert "1 provisional ones adopted" in said
    await seller.import_csv(a_csv(row))
    [after] = await seller.cards()
    assert after["product_id"] == before["product_id"]


def test_an_export_is_held_against_the_catalog(run, tmp_path, a_set, query):
    path = tmp_path / "AllPrintings.json"
    path.write_text(json.dumps(mtgjson(a_set)))
    printed(run("import", path))
    export = tmp_path / "export.csv"
    export.write_bytes(
        a_csv(
            a_row(1, name="Opt", number="65", set=a_set),
            a_row(2, name="Opt", number="66", set=a_set),
            a_row(3, name="Opp", number="65", set=a_set),
            a_row(4, name="Opt", number="65", set=f"{a_set} II"),
        )
    )
    rows = query("SELECT count(*) FROM product")
    report = tmp_path / "report.csv"
    result = run("match", export, "--report", report)
    assert printed(result) == "4 rows in export.csv: 1 matched, 0 ambiguous, 3 unmatched"
    written = list(csv.DictReader(report.open()))
    assert [(row["listing_id"], row["reason"]) for row in written] == [
        ("2", "the set has this name with a different number"),
        ("3", "the set has no product with this name"),
        ("4", "the catalog has no set with this name"),
    ]
    assert query("SELECT count(*) FROM product") == rows


def test_sets_that_no_catalog_knows_are_named_the_one_with_most_cards_first(run, tmp_path, a_set):
    export = tmp_path / "export.csv"
    export.write_bytes(
        a_csv(
            *(
                a_row(number, line="Magic", set=f"{a_set} {name}", name="Opt", quantity=copies)
                for number, (name, copies) in enumerate(
                    [("B", 2), ("A", 1), ("A", 4), *((f"C{n:02}", 1) for n in range(20))], 1
                )
            )
        )
    )

    def named(*words):
        result = run("match", export, *words)
        printed(result)
        said = [line for line in result.stderr.splitlines() if a_set in line or "more" in line]
        return [line.replace(a_set, "Set") for line in said]

    first = [
        "no catalog knows Set A (Magic): cards 5, rows 2",
        "no catalog knows Set B (Magic): cards 2, rows 1",
        "no catalog knows Set C00 (Magic): cards 1, rows 1",
    ]
    few = named()
    assert (few[:3], few[-1]) == (first, "2 more sets; --report FILE names them all")
    assert (len(named("--report", tmp_path / "report.csv")), len(few)) == (22, 21)


def test_a_file_that_is_no_export_is_told_in_one_sentence(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    result = run("match", tmp_path / "x.csv")
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
