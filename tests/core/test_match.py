"""Catalog matching: one verdict per row, never a wrong card, and the same verdict whatever is
around it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.catalog.condition import condition_columns
from cardsync.catalog.match import CATALOG_KEYS, ROW_KEYS, catalog_keys, explained, match, row_keys

SHARED = Path(__file__).resolve().parents[2] / "../shared/data"

Fields = dict[str, Any]
PRODUCT: Fields = {
    "game": "pokemon",
    "set_name": "SV: Black Bolt",
    "set_code": "BLK",
    "product_name": "Snivy",
    "number": "001/086",
    "rarity": "Common",
    "finish": "Normal",
    "language": "en",
    "marketplace_product_id": None,
}
ROW: Fields = {
    "game": "pokemon",
    "set_name": "SV: Black Bolt",
    "product_name": "Snivy",
    "number": "001/086",
    "label": "Near Mint",
}
MAGIC: Fields = {
    "game": "magic",
    "set_name": "Final Fantasy",
    "set_code": "FIN",
    "finish": None,
    "number": "263",
}
MAGIC_ROW: Fields = {"game": "magic", "set_name": "FINAL FANTASY", "number": "263"}


def catalog(*products: Fields) -> pl.DataFrame:
    """Products numbered from 1 in the order given."""
    schema = dict.fromkeys(PRODUCT, pl.String) | {"marketplace_product_id": pl.Int64}
    frame = pl.DataFrame([PRODUCT | fields for fields in products], schema=schema)
    return catalog_keys(frame.with_columns(id=pl.int_range(1, frame.height + 1, dtype=pl.Int64)))


def listed(*rows: Fields) -> pl.DataFrame:
    frame = pl.DataFrame([ROW | fields for fields in rows], schema=dict.fromkeys(ROW, pl.String))
    return row_keys(frame.hstack(condition_columns(frame.get_column("label")))).with_row_index(
        "row"
    )


def verdict(row: Fields, *products: Fields) -> tuple[int | None, str, str | None]:
    found = explained(listed(row), catalog(*products)).row(0, named=True)
    return found["product_id"], found["outcome"], found["reason"]


def matched(product_id: int) -> tuple[int, str, None]:
    return product_id, "matched", None


def unmatched(reason: str) -> tuple[None, str, str]:
    return None, "unmatched", reason


AMBIGUOUS = (None, "ambiguous", "several_products")


def test_the_key_columns_are_as_declared() -> None:
    products, rows = catalog({}), listed({})
    assert {name: products.schema[name] for name in CATALOG_KEYS} == CATALOG_KEYS
    assert {name: rows.schema[name] for name in ROW_KEYS} == ROW_KEYS


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"product_name": "Snivy - 001/086"},
        {"product_name": "SNIVY", "set_name": "Black Bolt"},
        {"number": "1/86"},
        {"number": "1"},
        {"label": "damaged"},
    ],
)
def test_spelling_does_not_part_a_row_from_its_product(row: Fields) -> None:
    assert verdict(row, {}) == matched(1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"game": "yugioh"}, "set_unknown"),
        ({"set_name": "SV: White Flare"}, "set_unknown"),
        ({"product_name": "Servine"}, "name_unknown"),
        ({"product_name": ""}, "name_unknown"),
        ({"product_name": "Snivy - 002/086"}, "name_unknown"),
        ({"number": "002/086"}, "number_differs"),
        ({"number": "001/087"}, "number_differs"),
        ({"number": ""}, "number_differs"),
        ({"product_name": "Snivy (Master Ball Pattern)"}, "variant_unknown"),
        ({"label": "Near Mint Holofoil"}, "printing_unknown"),
        ({"label": "Pristine"}, "printing_unknown"),
    ],
)
def test_an_unmatched_row_says_what_the_catalog_lacks(row: Fields, reason: str) -> None:
    assert verdict(row, {}) == unmatched(reason)


def test_patterns_are_products_of_their_own() -> None:
    patterns: tuple[Fields, ...] = (
        {},
        {"product_name": "Snivy (Master Ball Pattern)"},
        {"product_name": "Snivy (Poke Ball Pattern)"},
    )
    assert verdict({}, *patterns) == matched(1)
    assert verdict({"product_name": "Snivy - 001/086 (Master Ball Pattern)"}, *patterns) == matched(
        2
    )
    assert verdict({}, *patterns[1:]) == unmatched("variant_unknown")


def test_printings_choose_between_the_finishes_of_a_product() -> None:
    finishes = (
        {"marketplace_product_id": 7},
        {"marketplace_product_id": 7, "finish": "Reverse Holofoil"},
    )
    assert verdict({"label": "Near Mint Reverse Holofoil"}, *finishes) == matched(2)


def test_the_same_card_twice_is_one_card_but_two_listings_are_two() -> None:
    assert verdict({}, {}, {}) == matched(1)
    assert verdict({}, {}, {"marketplace_product_id": 7}) == matched(1)
    assert verdict({}, {"marketplace_product_id": 8}, {"marketplace_product_id": 7}) == AMBIGUOUS


def test_a_total_is_compared_only_where_both_give_one() -> None:
    promo, regular = {"number": "001"}, {"number": "001/086"}
    assert verdict({"number": "001/086"}, promo) == matched(1)
    assert verdict({"number": "001/086"}, promo, regular) == matched(2)
    assert verdict({"number": "001"}, promo, regular) == matched(1)
    assert verdict({"number": "001"}, regular, {"number": "001/090"}) == AMBIGUOUS


def test_a_finish_that_is_not_said_is_the_cards_own_or_its_base_one() -> None:
    def unsaid(*finishes: Fields) -> tuple[int | None, str]:
        row = row_keys(listed({}).with_columns(printing=pl.lit(None, pl.String)))
        return match(row, catalog(*finishes)).select("product_id", "outcome").row(0)

    holo, reverse = {"finish": "Holofoil"}, {"finish": "Reverse Holofoil"}
    pattern = {"product_name": "Snivy (Master Ball Pattern)", "finish": "Holofoil"}
    other = {"number": "2"}
    assert unsaid(holo, other) == (1, "matched")
    assert unsaid(holo, {}, reverse) == (2, "matched")
    assert unsaid(reverse, holo, pattern) == (2, "matched")
    foils = [{"finish": f"{kind} Foil", "marketplace_product_id": 7} for kind in ("Cold", "Galaxy")]
    assert unsaid(*foils) == (None, "ambiguous")
    assert verdict({"label": "Near Mint Foil"}, *foils) == AMBIGUOUS
    assert unsaid({"finish": None}) == (1, "matched")
    # A printing that cannot be read is no printing that was not said.
    assert verdict({"label": "Pristine"}, holo) == unmatched("printing_unknown")


@pytest.mark.parametrize("label", ["Near Mint", "Near Mint Foil", "unreadable"])
def test_a_product_without_a_finish_matches_any_printing(label: str) -> None:
    assert verdict(MAGIC_ROW | {"label": label}, MAGIC) == matched(1)


def test_in_magic_the_number_stands_for_the_treatment() -> None:
    island = MAGIC | {"product_name": "Island"}
    row = MAGIC_ROW | {"product_name": "Island (0263) (Borderless)"}
    assert verdict(row, island) == matched(1)
    assert verdict(row, island, island | {"product_name": "Island (Borderless)"}) == matched(2)
    assert verdict(row, island, island | {"product_name": "Island (Serialized)"}) == AMBIGUOUS
    assert verdict(row, island | {"product_name": "Island (Serialized)"}) == unmatched(
        "variant_unknown"
    )
    assert verdict(row, island | {"number": "264"}) == unmatched("number_differs")


@pytest.mark.parametrize(
    ("name", "number", "products", "expected"),
    [
        ("Bolt", "", [("Bolt", "149")], matched(1)),
        ("Bolt", "149", [("Bolt", None)], matched(1)),
        ("Bolt (CE)", "", [("Bolt", "149")], matched(1)),
        # More cards of the name, or another version of it: which one is meant is not said.
        ("Bolt", "", [("Bolt", "149"), ("Bolt", "150")], unmatched("number_differs")),
        ("Bolt", "", [("Bolt", None), ("Bolt", "150")], matched(1)),
        ("Bolt", "150", [("Bolt", None), ("Bolt", "149")], unmatched("number_differs")),
        ("Bolt", "149b", [("Bolt", None), ("Bolt [Version 2]", None)], unmatched("number_differs")),
        ("Bolt (A)", "", [("Bolt", "149")], unmatched("number_differs")),
        ("Bolt [Version 2]", "", [("Bolt", "149")], unmatched("number_differs")),
    ],
)
def test_in_magic_only_one_side_may_have_the_number_of_the_sole_card(
    name: str, number: str, products: list[tuple[str, str | None]], expected: object
) -> None:
    offered = [MAGIC | {"product_name": of, "number": its} for of, its in products]
    assert verdict(MAGIC_ROW | {"product_name": name, "number": number}, *offered) == expected


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("Jaya", ["263", "263★"], matched(1)),
        ("Jaya (JP Alternate Art)", ["263", "263★"], matched(2)),
        ("Jaya (Surge Foil)", ["263", "263★"], matched(2)),
        ("Jaya (Surge Foil)", ["263"], matched(1)),
        ("Jaya (Foil Etched)", ["263", "263★"], AMBIGUOUS),
        ("Jaya (Entry 546)", ["263", "263†"], AMBIGUOUS),
        ("Jaya (Retro Frame)", ["263", "263z"], matched(1)),
        ("Jaya (Serial Numbered)", ["263", "263z"], AMBIGUOUS),
        ("Jaya (Borderless)", ["263", "263b"], matched(1)),
        ("Jaya (B)", ["263a", "263b"], matched(2)),
        ("Jaya (Borderless)", ["263a", "263b"], unmatched("number_differs")),
        ("Island", ["263", "263a"], AMBIGUOUS),
        ("Island (0263) - Full Art", ["263", "263a"], matched(1)),
    ],
)
def test_in_magic_a_mark_behind_the_number_is_another_card(
    name: str, numbers: list[str], expected: object
) -> None:
    bare = name.partition(" (")[0]
    products = [MAGIC | {"product_name": bare, "number": number} for number in numbers]
    assert verdict(MAGIC_ROW | {"product_name": name}, *products) == expected


@pytest.mark.parametrize("game", ["pokemon", "pokemon_japan"])
@pytest.mark.parametrize(
    ("words", "offered", "found"),
    [
        ("(Full Art)", "", True),
        ("(Alternate Full Art)", "", True),
        ("(Alternate Art Secret)", "", True),
        ("(Alternate Art)", "(Full Art)", True),
        ("(Secret)", "", True),
        ("(Secret Rare)", "(Secret)", True),
        ("(1 Full Art)", "", True),
        ("(Team Plasma) (Full Art)", "", True),
        ("(Prime)", "", True),
        ("", "(Special Illustration Rare)", True),
        ("(Full Art) (Prerelease)", "(Prerelease)", True),
        ("(Full Art) (Prerelease)", "", False),
        ("(Full Art)", "(Staff)", False),
        ("(Cosmos Holo)", "", False),
        ("(Jumbo)", "", False),
        ("(Poke Ball Pattern)", "", False),
        ("(Master Ball Pattern)", "(Poke Ball Pattern)", False),
        ("(Prerelease) (Staff)", "(Prerelease)", False),
        ("(League)", "", False),
        ("(25th Anniversary Stamp)", "", False),
        ("(Reverse Cosmos Holo)", "(Secret)", False),
        ("(Non-Holo)", "", False),
        ("(#2)", "", False),
    ],
)
def test_in_pokemon_the_number_stands_for_a_treatment_alone(
    game: str, words: str, offered: str, found: bool
) -> None:
    row = {"game": game, "product_name": f"Snivy {words}"}
    product = {"game": game, "product_name": f"Snivy {offered}"}
    if game == "pokemon_japan":
        product["language"] = "ja"
    right = matched(1) if found else unmatched("variant_unknown")
    assert verdict(row, product) == right


def test_a_treatment_that_two_products_of_a_number_lack_is_neither() -> None:
    products = ({}, {"product_name": "Snivy (Full Art)"})
    assert verdict({"product_name": "Snivy (Full Art)"}, *products) == matched(2)
    assert verdict({"product_name": "Snivy (Secret)"}, *products) == AMBIGUOUS


@pytest.mark.parametrize(
    ("finishes", "found"),
    [
        (["Normal", "Cold Foil"], 2),
        (["Normal", "Foil", "Holofoil"], 2),
        (["Cold Foil", "Holofoil"], None),
        (["Normal"], 0),
    ],
)
def test_a_row_that_says_foil_alone_means_the_only_foil(finishes: list[str], found: int) -> None:
    products = [{"game": "lorcana", "finish": finish} for finish in finishes]
    right = {None: AMBIGUOUS, 0: unmatched("printing_unknown")}.get(found) or matched(found)
    assert verdict({"game": "lorcana", "label": "Near Mint Foil"}, *products) == right


def test_a_printing_of_no_table_is_matched_by_its_text() -> None:
    finishes = [{"finish": finish} for finish in ("Normal", "Galaxy Foil", "Cracked Ice")]
    assert verdict({"label": "Near Mint galaxy foil"}, *finishes) == matched(2)
    assert verdict({"label": "Damaged Cracked Ice"}, *finishes) == matched(3)
    assert verdict({"label": "Near Mint Glitter"}, *finishes) == unmatched("printing_unknown")


def test_a_catalog_may_write_a_printing_in_other_words() -> None:
    products = [
        {"game": "flesh_and_blood", "finish": finish}
        for finish in ("1st Edition", "Unlimited Rainbow Foil", "Foil Cold 1st Edition")
    ]
    for at, label in enumerate(
        ("1st Edition Normal", "Unlimited Edition Rainbow Foil", "1st Edition Cold Foil"), 1
    ):
        row = {"game": "flesh_and_blood", "label": f"Near Mint {label}"}
        assert verdict(row, *products) == matched(at)


def test_a_treatment_that_names_its_own_number_must_have_it() -> None:
    row = MAGIC_ROW | {"product_name": "Island (0264)", "number": "263"}
    assert verdict(row, MAGIC | {"product_name": "Island (0265)"}) == unmatched("variant_unknown")


@pytest.mark.parametrize(
    ("name", "product", "expected"),
    [
        ("Fire // Ice", "Fire // Ice", matched(1)),
        ("Fire", "Fire // Ice", matched(1)),
        ("Fire // Ice", "Fire", matched(1)),
        ("Fire // Ice", "Fire // Smoke", unmatched("number_differs")),
        ("Endwalker - Brainstorm (Showcase)", "Brainstorm", matched(1)),
        ("Endwalker - Brainstorm (Showcase)", "Endwalker", unmatched("name_unknown")),
    ],
)
def test_magic_cards_with_two_names(name: str, product: str, expected: object) -> None:
    assert (
        verdict(MAGIC_ROW | {"product_name": name}, MAGIC | {"product_name": product}) == expected
    )


def test_sealed_rows_match_sealed_products_only() -> None:
    box = {"product_name": "Black Bolt Booster Box", "number": None, "rarity": None, "finish": None}
    row = {"product_name": "Black Bolt Booster Box", "number": "", "label": "Unopened"}
    assert verdict(row, box) == matched(1)
    assert verdict(row, box | {"rarity": "Promo"}) == unmatched("number_differs")
    assert verdict(row | {"label": "Near Mint"}, box) == unmatched("number_differs")
    assert verdict({"label": "Unopened"}, {}) == unmatched("number_differs")


@pytest.mark.parametrize(
    "name",
    ["Fire // Ice", "Fire/Ice", "Fire / Ice", "Fire//Ice", "Sauron - Fire // Ice", "FIRE/ICE"],
)
def test_faces_are_parted_in_any_form(name: str) -> None:
    card = MAGIC | {"product_name": "Fire // Ice"}
    assert verdict(MAGIC_ROW | {"product_name": name}, card) == matched(1)
    whole = MAGIC | {"product_name": "SP//dr, Piloted by Peni"}
    peni = MAGIC_ROW | {"product_name": "SP//dr, Piloted by Peni"}
    assert verdict(peni, whole) == matched(1)
    assert verdict(MAGIC_ROW | {"product_name": name}, whole) == unmatched("name_unknown")


LANGUAGES_OF_COPIES = ("German", "Japanese", "Chinese (S)", "Phyrexian", "Ancient Greek")


@pytest.mark.parametrize("language", LANGUAGES_OF_COPIES)
def test_a_copy_in_another_language_is_the_same_product(language: str) -> None:
    row: Fields = {"label": f"Near Mint - {language}"}
    assert verdict(row, {}) == matched(1)
    assert verdict(MAGIC_ROW | row, MAGIC) == matched(1)
    assert verdict(row | {"number": "001/087"}, {}) == unmatched("number_differs")


def test_a_language_that_a_catalog_lists_as_a_product_of_its_own_decides() -> None:
    german = {"label": "Near Mint - German"}
    japanese = {"label": "Near Mint - Japanese"}
    both: tuple[Fields, ...] = ({}, {"language": "de"})
    assert verdict({}, *both) == matched(1)
    assert verdict(german, *both) == matched(2)
    assert verdict(japanese, *both) == matched(1)
    assert verdict({}, {"language": "ja"}) == unmatched("language_unknown")
    assert verdict(german, {"language": "ja"}) == unmatched("language_unknown")
    assert verdict(japanese, {"language": "ja"}) == matched(1)


def test_a_printing_in_a_language_of_no_sku_is_listed_like_any_other() -> None:
    praetor = MAGIC | {"language": "ph"}
    for label in ("Near Mint", "Near Mint - Japanese", "Near Mint - Phyrexian"):
        assert verdict(MAGIC_ROW | {"label": label}, praetor) == matched(1)


def test_the_japanese_product_line_is_japanese_with_or_without_saying_so() -> None:
    card = {
        "game": "pokemon_japan",
        "set_name": "テラスタルフェスex",
        "set_code": "SV8a",
        "product_name": "カルボウ",
    }
    product = card | {"language": "ja"}
    row = {name: card[name] for name in ("game", "set_name", "product_name")}
    assert verdict(row | {"label": "Near Mint - Japanese"}, product) == matched(1)
    assert verdict(row, product) == matched(1)
    assert verdict(row | {"label": "Near Mint - Korean"}, product) == unmatched("language_unknown")
    # The series code in front of the name is the catalog's set code.
    assert verdict(row | {"set_name": "SV8a: Terastal Fest ex"}, product) == matched(1)
    assert verdict(
        row | {"set_name": "SV8a: Terastal Fest ex"}, product, product | {"set_name": "x"}
    ) == unmatched("set_unknown")


def test_nothing_in_nothing_out() -> None:
    empty = explained(listed().head(0), catalog({}))
    assert empty.schema == {
        "row": pl.UInt32,
        "product_id": pl.Int64,
        "outcome": pl.String,
        "reason": pl.String,
    }
    assert explained(listed({}), catalog()).row(0)[1:] == unmatched("set_unknown")


names = st.sampled_from(
    ["Snivy", "Snivy (Jumbo)", "Snivy (League)", "Servine", "Fire // Ice", "Fire", "A - Fire"]
)
numbers = st.sampled_from(["001/086", "1", "1/90", "2", ""])
games = st.sampled_from(["magic", "pokemon"])
sets = st.sampled_from(["SV: Black Bolt", "Black Bolt", "White Flare"])
product_fields = st.fixed_dictionaries(
    {
        "game": games,
        "set_name": sets,
        "product_name": names,
        "number": numbers,
        "finish": st.sampled_from([None, "Normal", "Holofoil"]),
        "language": st.sampled_from(["en", "ja"]),
        "marketplace_product_id": st.sampled_from([None, 7, 8]),
    }
)
row_fields = st.fixed_dictionaries(
    {
        "game": games,
        "set_name": sets,
        "product_name": names,
        "number": numbers,
        "label": st.sampled_from(
            ["Near Mint", "Near Mint Holofoil", "Unopened", "Near Mint - Japanese", "odd"]
        ),
    }
)
many_rows = st.lists(row_fields, min_size=1, max_size=8)
many_products = st.lists(product_fields, max_size=12)


@pytest.mark.day
@settings(deadline=None)
@given(many_rows, many_products, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_catalog_does_not_matter(
    rows: list[Fields], products: list[Fields], random: Any
) -> None:
    keyed, offered = listed(*rows), catalog(*products)
    expected = match(keyed, offered)
    assert expected.get_column("row").to_list() == keyed.get_column("row").to_list()
    shuffled = keyed.select(pl.all().shuffle(random.randrange(99)))
    reversed_catalog = offered.reverse()
    assert match(shuffled, reversed_catalog).sort("row").equals(expected)


@pytest.mark.day
@settings(deadline=None)
@given(many_rows, many_products)
def test_a_matched_product_contradicts_its_row_in_nothing(
    rows: list[Fields], products: list[Fields]
) -> None:
    keyed, offered = listed(*rows), catalog(*products)
    found = explained(keyed, offered)
    assert found.drop("reason").equals(match(keyed, offered))
    assert found.filter(
        pl.col("product_id").is_not_null() != (pl.col("outcome") == "matched")
    ).is_empty()
    assert found.filter(pl.col("reason").is_null() != (pl.col("outcome") == "matched")).is_empty()
    pairs = (
        found.filter(outcome="matched")
        .join(keyed, on="row")
        .join(offered, left_on="product_id", right_on="id")
    )
    for pair in pairs.iter_rows(named=True):
        assert pair["game"] == pair["game_right"]
        assert pair["set_key"] == pair["set_key_right"]
        assert pair["name_key_right"] in (pair["name_key"], pair["alias_key"])
        assert pair["number_key"] == pair["number_key_right"]
        assert None in (pair["number_total"], pair["number_total_right"]) or (
            pair["number_total"] == pair["number_total_right"]
        )
        assert pair["game"] == "magic" or pair["variant_key"] == pair["variant_key_right"]
        assert pair["finish_key_right"] in (None, pair["finish_key"])
        assert pair["language_key_right"] in ("en", pair["language_key"])
        assert pair["sealed"] == pair["sealed_right"]


@pytest.mark.day
@settings(deadline=None)
@given(many_rows, many_products, st.lists(product_fields, max_size=6))
def test_unrelated_products_change_nothing(
    rows: list[Fields], products: list[Fields], others: list[Fields]
) -> None:
    keyed = listed(*rows)
    unrelated = [fields | {"set_name": "Elsewhere", "set_code": "ELS1"} for fields in others]
    assert match(keyed, catalog(*products, *unrelated)).equals(match(keyed, catalog(*products)))


@pytest.mark.day
@settings(deadline=None)
@given(many_rows, many_products)
def test_a_row_is_judged_by_itself(rows: list[Fields], products: list[Fields]) -> None:
    keyed, offered = listed(*rows), catalog(*products)
    together = match(keyed, offered)
    alone = pl.concat([match(keyed.slice(index, 1), offered) for index in range(keyed.height)])
    assert alone.equals(together)


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not here")
def test_every_card_of_the_shared_catalogs_finds_itself() -> None:
    frames = [
        pl.read_parquet(path)
        .sample(4_000, seed=1)
        .select(
            *(pl.col(name).cast(pl.String) for name in PRODUCT if name != "marketplace_product_id"),
            "product_id",
        )
        for path in sorted((SHARED / "catalog").glob("*.parquet"))
    ]
    cards = pl.concat(frames).rename({"product_id": "marketplace_product_id"})
    products = catalog_keys(cards.with_row_index("id"))
    rows = cards.with_columns(
        condition=pl.lit("NM"),
        printing=pl.col("finish").fill_null("Foil"),
        language=pl.col("language").replace({"en": "English", "ja": "Japanese"}),
    )
    found = match(row_keys(rows).with_row_index("row"), products)
    wrong = found.filter((pl.col("outcome") == "matched") & (pl.col("product_id") != pl.col("row")))
    # Two catalog rows that agree in every identity field are one card; the smaller id stands for
    # both.
    twins = wrong.join(cards.with_row_index("row"), on="row").join(
        cards.with_row_index("product_id"),
        on=["product_id", "set_name", "product_name", "number"],
        how="anti",
    )
    assert twins.is_empty()
    assert found.filter(outcome="unmatched").is_empty()
    assert found.filter(outcome="matched").height >= 0.999 * found.height
