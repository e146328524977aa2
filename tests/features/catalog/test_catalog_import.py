"""`cardsync catalog import`: our own columns as CSV and Parquet, again and again, and what it
says to files that are none.
"""

import polars as pl
import psycopg
import pytest
from click.testing import CliRunner

from cardsync.cli import program
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from world import refused


@pytest.fixture
def run(in_the_environment):
    """`run(path, "--game", "magic")` is `cardsync catalog import` against the tests' database."""
    yield lambda path, *options: CliRunner().invoke(
        program, ["catalog", "import", str(path), *options]
    )
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
def products(owner_url, a_set):
    """The stored products of the test's set, as (id, name, number, rarity, language)."""

    def read():
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            return connection.execute(
                "SELECT id, product_name, number, rarity, language FROM product"
                " WHERE set_name = %s ORDER BY product_name",
                (a_set,),
            ).fetchall()

    return read


def a_catalog(a_set, *names, **columns):
    count = len(names)
    usual = {
        "game": ["magic"] * count, "set_name": [a_set] * count, "product_name": list(names),
        "number": [str(n) for n in range(1, count + 1)], "rarity": ["Rare"] * count,
    }  # fmt: skip
    return pl.DataFrame(usual | columns)


def said(done):
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_of_our_columns_is_loaded(run, tmp_path, a_set, products, form):
    catalog = a_catalog(
        a_set, "Ancestral Recall", "Black Lotus", set_code=["LEA", "LEA"], product_id=[11, 12]
    )
    path = tmp_path / f"a catalog.{form}"
    catalog.write_csv(path) if form == "csv" else catalog.write_parquet(path)
    told = f"2 products in a catalog.{form}: 2 new, 0 changed, 0 provisional ones adopted"
    assert said(run(path)) == told
    assert [row[1:] for row in products()] == [
        ("Ancestral Recall", "1", "Rare", "en"),
        ("Black Lotus", "2", "Rare", "en"),
    ]


def test_the_format_can_be_named(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.txt"
    a_catalog(a_set, "Black Lotus").write_csv(path)
    assert "1 new" in said(run(path, "--format", "csv"))
    assert len(products()) == 1


@pytest.mark.night
def test_loading_the_same_file_again_adds_nothing(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Ancestral Recall", "Black Lotus").write_csv(path)
    run(path)
    before = products()
    assert "0 new" in said(run(path))
    assert products() == before


@pytest.mark.night
def test_a_newer_edition_updates_and_adds_under_the_old_ids(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Ancestral Recall", "Black Lotus").write_csv(path)
    run(path)
    ids = [row[0] for row in products()]
    a_catalog(
        a_set, "Ancestral Recall", "Black Lotus", "Timetwister", rarity=["Mythic", "Rare", "Rare"]
    ).write_csv(path)
    assert "1 new" in said(run(path))
    after = products()
    assert [row[0] for row in after[:2]] == ids
    assert [row[3] for row in after] == ["Mythic", "Rare", "Rare"]


def test_a_product_that_stands_in_a_file_twice_is_one(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    pl.concat([a_catalog(a_set, "Black Lotus")] * 3).write_csv(path)
    assert "1 new" in said(run(path))
    assert len(products()) == 1


def test_game_picks_one_line_of_a_file(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus", "Snivy", game=["magic", "pokemon"]).write_csv(path)
    assert "1 new" in said(run(path, "--game", "pokemon"))
    assert [row[1] for row in products()] == ["Snivy"]


def test_game_names_the_line_where_the_file_does_not(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus").drop("game").write_csv(path)
    assert "1 new" in said(run(path, "--game", "magic"))
    assert len(products()) == 1


def test_rows_without_a_name_are_left_out(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus", "", " ").write_csv(path)
    assert "1 products" in said(run(path))
    assert len(products()) == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("catalog.csv", b"game,product_name\nmagic,Black Lotus\n", "set_name"),
        ("catalog.csv", b"set_name,product_name\nAlpha,Black Lotus\n", "game"),
        ("catalog.csv", b"game,set_name,product_name\nchess,Alpha,Black Lotus\n", "chess"),
        ("catalog.csv", b"game,set_name,product_name\n,Alpha,Black Lotus\n", "product line"),
        ("catalog.csv", b"", "catalog.csv"),
        ("catalog.csv", b"\xff\xfe\x00\x01\x02", "catalog.csv"),
        ("catalog.parquet", b"PAR1 or not", "parquet"),
        ("catalog.parquet", b"", "parquet"),
        ("catalog.xlsx", b"PK", "--format"),
        ("catalog", b"game,set_name,product_name\n", "--format"),
    ],
)
def test_a_file_that_is_no_catalog_is_told_in_one_sentence(run, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refused(run(path))


def test_an_unknown_game_is_told_in_one_sentence(run, tmp_path, a_set):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus").drop("game").write_csv(path)
    assert "chess" in refused(run(path, "--game", "chess"))


def test_an_unknown_game_does_not_quietly_import_nothing(run, tmp_path, a_set):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus").write_csv(path)
    assert "chess" in refused(run(path, "--game", "chess"))


def test_a_bad_row_is_skipped_and_listed(run, tmp_path, a_set, products):
    path = tmp_path / "catalog.csv"
    a_catalog(a_set, "Black Lotus", "King", game=["magic", "chess"]).write_csv(path)
    done = run(path)
    assert said(done).endswith("; 1 record was skipped")
    assert "skipped row 2: chess is not a known product line" in done.stderr
    assert [row[1] for row in products()] == ["Black Lotus"]


def test_a_path_that_does_not_exist_is_a_usage_error(run, tmp_path):
    done = run(tmp_path / "nowhere.csv")
    assert done.exit_code == 2
    assert "nowhere.csv" in done.stderr
