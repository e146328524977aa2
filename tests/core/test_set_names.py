"""Set names: what the marketplace, catalogs and apps call one set has one key, two sets never have,
and a set whose cards a catalog has in other sets leads to those cards alone.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from cardsync.catalog.condition import condition_columns
from cardsync.catalog.match import catalog_keys, explained, match, row_keys
from cardsync.catalog.set_aliases import BY_GAME
from cardsync.catalog.set_names import parts, set_columns

SHARED = Path(__file__).resolve().parents[2] / "../shared/data/catalog"
needs_catalogs = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not here")
FIELDS = ["game", "set_name", "set_code", "product_name", "number", "rarity", "finish", "language"]


def keys(game: str, *names: str) -> list[str]:
    rows = pl.DataFrame({"game": [game] * len(names), "set_name": list(names)})
    return set_columns(rows)["set_key"].to_list()


@pytest.mark.parametrize(
    ("game", "names"),
    [
        ("magic", "7th Edition | Seventh Edition"),
        ("magic", "Magic 2010 (M10) | Magic 2010"),
        ("magic", "Beta Edition | Limited Edition Beta | Beta"),
        ("magic", "Unlimited Edition | Unlimited"),
        ("magic", "Revised Edition | 3rd Edition"),
        ("magic", "Commander: FINAL FANTASY | Final Fantasy Commander"),
        ("magic", "Zendikar Rising Commander Decks | Commander: Zendikar Rising"),
        ("magic", "Universes Beyond: Doctor Who | Doctor Who"),
        ("magic", "Magic: The Gathering—Commander | Commander | Commander 2011"),
        ("magic", "Marvel's Spider-Man: Eternal-Legal | Marvel's Spider-Man Eternal"),
        ("magic", "Magic Game Night: Free-For-All | Game Night: Free-for-All"),
        ("magic", "Core 2019 | Core Set 2019"),
        ("magic", "Modern Horizons 3: Extras | Modern Horizons 3"),
        ("magic", "Extras: Modern Horizons 3 | Modern Horizons 3 Tokens"),
        ("magic", "Throne of Eldraine Variants | Throne of Eldraine"),
        ("magic", "Art Series: Modern Horizons | Modern Horizons Art Series"),
        ("magic", "War of the Spark: Mythic Edition | Mythic Edition"),
        ("magic", "Multiverse Legends: March of the Machine | Multiverse Legends"),
        ("pokemon", "SV: Scarlet & Violet 151 | 151 | Scarlet & Violet: 151"),
        ("pokemon", "SWSH12: Silver Tempest | Silver Tempest"),
        ("pokemon", "ME01: Mega Evolution | Mega Evolution"),
        ("pokemon", "XY trainer Kit (Noivern) | XY Trainer Kit: Sylveon & Noivern"),
        ("pokemon", "McDonald's Collection 2023 | McDonald's Promos 2023"),
        ("pokemon", "Scarlet & Violet Energy | SVE: Scarlet & Violet Energies"),
        ("lorcana", "Reign of Jafar | The Reign of Jafar"),
    ],
)
def test_names_of_one_set_have_one_key(game: str, names: str) -> None:
    assert len(set(keys(game, *names.split(" | ")))) == 1


@pytest.mark.parametrize(
    ("game", "names"),
    [
        ("magic", "Commander 2011 | Commander 2013 | Commander Masters"),
        ("magic", "Starter Commander Decks | Starter Commander"),
        ("magic", "Arena New Player Experience | Arena New Player Experience Extras"),
        ("magic", "Promo Pack: Kaldheim | Kaldheim Promos | Kaldheim"),
        ("magic", "Alpha Edition | Beta Edition | Unlimited Edition | Revised Edition"),
        ("pokemon", "Base Set | Base Set 2 | Base Set (Shadowless)"),
        ("pokemon", "SM Promos | XY Promos"),
        ("pokemon_japan", "S-P Promotional Cards | SV-P Promotional Cards"),
    ],
)
def test_names_of_two_sets_have_two_keys(game: str, names: str) -> None:
    several = names.split(" | ")
    assert len(set(keys(game, *several))) == len(several)


def test_a_promos_series_is_a_code() -> None:
    rows = pl.DataFrame({"game": ["pokemon_japan"], "set_name": ["SV-P Promotional Cards"]})
    assert set_columns(rows)["set_series"].to_list() == ["sv-p"]


def row(**fields: str) -> pl.DataFrame:
    usual = {"game": "magic", "product_name": "Opt", "number": "1", "label": "Near Mint Foil"}
    frame = pl.DataFrame([usual | fields])
    return row_keys(frame.hstack(condition_columns(frame["label"]))).with_row_index("row")


def catalog(*products: tuple[str, str, str]) -> pl.DataFrame:
    """Products of a set, a name and a number, numbered from 1."""
    frame = pl.DataFrame(
        [
            {
                "game": "magic",
                "set_name": set_name,
                "set_code": None,
                "product_name": name,
                "number": number,
                "rarity": "R",
                "finish": None,
                "language": "en",
                "marketplace_product_id": None,
            }
            for set_name, name, number in products
        ],
        schema=dict.fromkeys(FIELDS, pl.String) | {"marketplace_product_id": pl.Int64},
    )
    return catalog_keys(frame.with_columns(id=pl.int_range(1, frame.height + 1, dtype=pl.Int64)))


def verdict(asked: pl.DataFrame, *products: tuple[str, str, str]) -> tuple[int | None, str]:
    found = explained(asked, catalog(*products)).row(0, named=True)
    return found["product_id"], found["outcome"]


FNM = "Friday Night Magic"
UNMATCHED = (None, "unmatched")


@pytest.mark.parametrize(
    ("asked", "products", "expected"),
    [
        ({"set_name": "FNM Promos"}, [(f"{FNM} 2004", "Opt", "1")], (1, "matched")),
        ({"set_name": "FNM Promos"}, [(f"{FNM} 2004", "Opt", "2")], UNMATCHED),
        # The catalog's own set of the name is the set, whatever others have.
        (
            {"set_name": "FNM Promos"},
            [("FNM Promos", "Opt", "2"), (f"{FNM} 2004", "Opt", "1")],
            UNMATCHED,
        ),
        (
            {"set_name": "FNM Promos"},
            [(f"{FNM} 2004", "Opt", "1"), (f"{FNM} 2005", "Opt", "1")],
            (None, "ambiguous"),
        ),
        (
            {"set_name": "Promo Pack: Kaldheim", "number": "272"},
            [("Kaldheim Promos", "Opt", "272s"), ("Kaldheim Promos", "Opt", "272p")],
            (2, "matched"),
        ),
        (
            {"set_name": "Promo Pack: Kaldheim", "number": "272"},
            [("Kaldheim", "Opt", "272"), ("Kaldheim Promos", "Opt", "272s")],
            UNMATCHED,
        ),
        (
            {"set_name": "Prerelease Cards", "number": "184"},
            [("Final Fantasy Promos", "Opt", "184s"), ("Final Fantasy", "Opt", "184")],
            (1, "matched"),
        ),
        (
            {"set_name": "Prerelease Cards", "number": "75"},
            [("Theros Promos", "Opt", "75★"), ("Theros", "Opt", "75")],
            (1, "matched"),
        ),
        (
            {"set_name": "Buy-A-Box Promos", "number": "35/383"},
            [("Tenth Edition Promos", "Opt", "35"), ("Tenth Edition", "Opt", "35")],
            (1, "matched"),
        ),
        (
            {"set_name": "Buy-A-Box Promos", "number": "75"},
            [("Theros Promos", "Opt", "75"), ("Kaldheim", "Opt", "75")],
            UNMATCHED,
        ),
        (
            {"set_name": "Launch Party & Release Event Promos", "number": "75"},
            [("Theros Promos", "Opt", "75*"), ("Magic 2015 Promos", "Opt", "75")],
            (None, "ambiguous"),
        ),
        (
            {"set_name": "The List Reprints", "number": "002/106"},
            [("The List", "Opt", "E01-2"), ("The List", "Opt", "DDG-5")],
            (1, "matched"),
        ),
        (
            {"set_name": "Unique and Miscellaneous Promos", "number": "10"},
            [("Media and Collaboration Promos", "Opt", "2025-10")],
            (1, "matched"),
        ),
        # Without a number the card must be the only one of its name.
        ({"set_name": "FNM Promos", "number": ""}, [(f"{FNM} 2004", "Opt", "1")], (1, "matched")),
        (
            {"set_name": "FNM Promos", "number": ""},
            [(f"{FNM} 2004", "Opt", "1"), (f"{FNM} 2004", "Opt", "2")],
            UNMATCHED,
        ),
        (
            {"set_name": "FNM Promos", "number": ""},
            [(f"{FNM} 2004", "Opt", "1"), (f"{FNM} 2005", "Opt", "1")],
            UNMATCHED,
        ),
    ],
)
def test_a_set_that_the_catalog_has_in_parts(
    asked: dict[str, str],
    products: list[tuple[str, str, str]],
    expected: tuple[int | None, str],
) -> None:
    assert verdict(row(**asked), *products) == expected


def test_a_number_without_its_total_is_no_evidence_for_another_set() -> None:
    asked = row(game="pokemon", set_name="Generations: Radiant Collection", number="RC1")
    known = catalog(("Generations", "Opt", "RC1/RC32")).with_columns(
        game=pl.lit("pokemon"), set_key=pl.lit("generations")
    )
    assert match(asked, known)["outcome"].to_list() == ["unmatched"]
    total = asked.with_columns(number_total=pl.lit("RC32"))
    assert match(total, known)["outcome"].to_list() == ["matched"]


def test_a_set_that_sources_number_differently_is_told_by_its_names() -> None:
    asked = row(game="pokemon", set_name="Celebrations: Classic Collection", number="4/102")
    products = [("Celebrations: Classic Collection", "Opt", "CC002"), ("Celebrations", "Opt", "4")]
    known = catalog(*products).with_columns(game=pl.lit("pokemon"))
    assert match(asked, known).select("product_id", "outcome").row(0) == (1, "matched")
    twice = pl.concat(
        [known, known.head(1).with_columns(id=pl.lit(9, pl.Int64), number_key=pl.lit("CC3"))]
    )
    assert match(asked, twice)["outcome"].to_list() == ["unmatched"]


# The list, line by line.

# Scryfall, MTGJSON and pokemon-tcg-data have these; the shared catalogs do not.
ELSEWHERE = {
    "magic": """
        Foreign Black Border | Fourth Edition Foreign Black Border | Vanguard Series | The List
        Intl. Collectors' Edition | Mystery Booster Retail Edition Foils | Theros Hero's Path
        Magic Premiere Shop 2005
    """,
    "lorcana": "The Reign of Jafar | Disney Lorcana Promo Cards",
    "pokemon": "McDonald's 25th Anniversary Promos | SV: Scarlet & Violet Promo Cards",
}
LINES = [
    (game, line) for game, table in BY_GAME.items() for line in table.split("\n") if line.strip()
]


def shared() -> pl.DataFrame:
    return pl.concat(
        pl.read_parquet(path).select(*FIELDS, "product_id")
        for path in sorted(SHARED.glob("*.parquet"))
    )


def test_a_name_stands_in_one_line_alone() -> None:
    for game in BY_GAME:
        names = [
            name
            for of_game, line in LINES
            if of_game == game and " > " not in line
            for name in set(line.split(" = ")[:-1])
        ]
        assert sorted(set(names)) == sorted(names)


@needs_catalogs
def test_each_line_leads_to_a_set_that_a_catalog_has() -> None:
    sets = shared().select("game", "set_name").unique()
    known = set(sets.hstack(set_columns(sets)).select("game", "set_key").iter_rows())
    known |= {
        (game, key)
        for game, names in ELSEWHERE.items()
        for line in names.strip().splitlines()
        for key in keys(game, *(name.strip() for name in line.split("|")))
    }
    for game, line in LINES:
        whole, _, of_parts = line.partition(" > ")
        if of_parts:
            found = {part.set_key for part in parts(game, *keys(game, whole))}
            assert any((game, key) in known for key in found), line
        else:
            assert (game, keys(game, line.split(" = ")[-1])[0]) in known, line


@needs_catalogs
def test_no_two_sets_of_a_catalog_have_one_key() -> None:
    """But for a set that a catalog itself tells apart by its language or by a promo's letters."""
    sets = shared().select("game", "set_name").unique()
    twice = (
        sets.hstack(set_columns(sets))
        .group_by("game", "set_key")
        .agg(pl.col("set_name").sort())
        .filter(pl.col("set_name").list.len() > 1)
    )
    assert twice["set_name"].to_list() == [["EX Unseen Forces", "Unseen Forces Unown Collection"]]


@needs_catalogs
def test_the_names_that_tcgdex_gives_pokemons_sets_lead_to_the_marketplaces() -> None:
    sets = (
        pl.read_parquet(SHARED / "pokemon_tcgdex_en.parquet")
        .select("game", "set_name", "native_set_name")
        .unique()
    )
    theirs = sets.select("game", set_name="native_set_name")
    other = sets.filter(
        set_columns(sets)["set_key"] != set_columns(theirs)["set_key"],
        # Both printings of the Base Set have one name there, and the catalog has these promos in
        # the set of another name.
        ~pl.col("native_set_name").is_in(["Base Set", "SVP Black Star Promos"]),
    )
    assert other.rows() == []


@needs_catalogs
def test_a_card_under_any_name_of_its_set_is_that_card() -> None:
    """Each card of the sets that have another name, written under each of these names, is the card
    itself: only a match by the whole list on a whole catalog shows that a name leads nowhere else.
    """
    cards = shared().with_row_index("id").rename({"product_id": "marketplace_product_id"})
    cards = cards.hstack(set_columns(cards).select("set_key")).with_columns(
        pl.col("id").cast(pl.Int64)
    )
    products = catalog_keys(cards.drop("set_key"))
    names = [
        (game, name, key, sign)
        for game, line in LINES
        for whole, _, of_parts in [line.partition(" > ")]
        for name in ([whole] if of_parts else line.split(" = ")[:-1])
        for key, sign in (
            parts(game, *keys(game, whole))
            if of_parts
            else [(keys(game, line.split(" = ")[-1])[0], "")]
        )
    ]
    schema = ["game", "alias", "set_key", "sign"]
    under = pl.DataFrame(names, schema=schema, orient="row").join(cards, on=["game", "set_key"])
    sign = pl.col("sign").str.to_lowercase()
    plain = pl.col("number").str.strip_suffix(sign)
    rows = under.filter((sign == "") | (sign == "-") | pl.col("number").str.ends_with(sign)).select(
        "game",
        "product_name",
        "id",
        set_name="alias",
        number=pl.when(sign == "-").then(pl.col("number").str.replace("^.*-", "")).otherwise(plain),
        condition=pl.lit("NM"),
        printing=pl.col("finish").fill_null("Foil"),
        language=pl.lit("English"),
    )
    assert rows.height > 9_000
    found = match(row_keys(rows).with_row_index("row"), products)
    judged = rows.hstack(found.select("product_id", "outcome"))
    said = cards.select(
        product_id="id", of_set="set_key", of_name="product_name", of_number="number"
    )
    own = cards.select("id", own_set="set_key", own_number="number")
    wrong = (
        judged.filter(outcome="matched")
        .join(said, on="product_id")
        .join(own, on="id")
        .filter(
            (pl.col("of_set") != pl.col("own_set"))
            | (pl.col("of_name") != pl.col("product_name"))
            | (pl.col("of_number") != pl.col("own_number"))
        )
    )
    assert wrong.select("set_name", "product_name", "number", "of_set", "of_number").rows() == []
    assert judged.filter(outcome="matched").height > 0.97 * rows.height
