"""`cardsync market import`: sales, listings and daily prices, again and again, and the records
that cannot be used.
"""

import gzip
import json
import lzma
from datetime import UTC, datetime

import polars as pl
import psycopg
import pytest

from cardsync.platform.database.urls import libpq_url

AT = "2026-11-20T10:00:00Z"
SALE = "condition, sold_at, price, quantity"
LISTING = "condition, observed_at, listings, copies, low"


def moment(day, hour=10):
    return datetime(2026, 11, day, hour, tzinfo=UTC)


def test_a_sale_counts_once_and_a_second_import_writes_nothing(
    run, stored, written, product, owner_url
):
    lines = [
        f"{product},NM,Normal,English,1.50,2,2026-11-19T10:00:00Z,{AT},",
        f"{product},near mint,normal,en,$1.50,2,2026-11-19 10:00:00,{AT},",
        f'{product},LP,Foil,Japanese,"1,234.56785",1,2026-11-19T12:00:00+02:00,{AT},',
    ]
    path = written(*lines)
    first = run(path)
    assert first.exit_code == 0, first.output
    assert "2 sales, 0 listings and 0 prices are new" in first.stdout
    assert stored("market_sale", product, SALE) == [
        ("LP", moment(19), 12_345_679, 1),
        ("NM", moment(19), 15_000, 2),
    ]
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        versions = (
            "SELECT xmin::text FROM market_look WHERE product_id = %(product)s"
            " UNION ALL SELECT xmin::text FROM market_newest WHERE product_id = %(product)s"
        )
        before = owner.execute(versions, {"product": product}).fetchall()
        again = run(path)
        assert "0 sales, 0 listings and 0 prices are new" in again.stdout
        assert len(before) == 3
        assert owner.execute(versions, {"product": product}).fetchall() == before


@pytest.mark.night
def test_listings_of_a_moment_are_counted(run, stored, written, product):
    header = "product_id,condition,printing,language,price,quantity,observed_at\n"
    path = written(
        f"{product},NM,Normal,English,2.00,3,{AT}",
        f"{product},NM,Normal,English,2.00,3,{AT}",
        f"{product},NM,Normal,English,1.75,1,{AT}",
        f"{product},DMG,Normal,English,0.25,1,{AT}",
        header=header,
    )
    assert "2 listings" in run(path).stdout
    assert stored("market_listing", product, LISTING) == [
        ("DMG", moment(20), 1, 1, 2_500),
        ("NM", moment(20), 3, 7, 17_500),
    ]
    assert "0 listings" in run(path).stdout


def test_sales_and_listings_come_typed_in_one_parquet_file(run, stored, tmp_path, product):
    path = tmp_path / "both.parquet"
    pl.DataFrame(
        {
            "product_id": [product, product],
            "condition": ["NM", "NM"],
            "printing": ["Normal", "Normal"],
            "language": ["English", "English"],
            "price": [1.1, 0.29],
            "quantity": [1, 4],
            "kind": ["sale", "listing"],
            "sold_at": [datetime(2026, 11, 19, 10), None],
            "fetched_at": [moment(20), None],
            "observed_at": [None, moment(20, 11)],
        }
    ).write_parquet(path)
    said = run(path).stdout
    assert "1 sales, 1 listings" in said
    assert stored("market_sale", product, "price") == [(11_000,)]
    assert stored("market_listing", product, "low, copies") == [(2_900, 4)]


def test_bad_rows_are_listed_and_stop_nothing(run, stored, written, product, tmp_path):
    good = f"{product},NM,Normal,English,1.50,2,2026-11-19T10:00:00Z,{AT},"
    bad = {
        f"x,NM,Normal,English,1,1,{AT},{AT},": "product_id is not a number",
        f"{product},Mint,Normal,English,1,1,{AT},{AT},": "Mint is not a known condition",
        f"{product},NM,Shiny,English,1,1,{AT},{AT},": "Shiny is not a known printing",
        f"{product},NM,Normal,Klingon,1,1,{AT},{AT},": "Klingon is not a known language",
        f"{product},,Normal,English,1,1,{AT},{AT},": "(nothing) is not a known condition",
        f"{product},NM,Normal,English,0,1,{AT},{AT},": "price is not an amount above zero",
        f"{product},NM,Normal,English,NaN,1,{AT},{AT},": "price is not an amount above zero",
        f"{product},NM,Normal,English,1e3,1,{AT},{AT},": "price is not an amount above zero",
        f"{product},NM,Normal,English,1,1.5,{AT},{AT},": "quantity is not a whole number above zero",
        f"{product},NM,Normal,English,1,0,{AT},{AT},": "quantity is not a whole number above zero",
        f"{product},NM,Normal,English,1,1,yesterday,{AT},": "sold_at is not a time",
        f"{product},NM,Normal,English,1,1,{AT},,": "fetched_at is not a time",
        f"{product},NM,Normal,English,1,1,,,": "observed_at is not a time",
    }
    skipped = tmp_path / "skipped.csv"
    answer = run(written(*bad, good), "--skipped", skipped)
    assert answer.exit_code == 0
    assert f"1 sales, 0 listings and 0 prices are new; {len(bad)} records were skipped" in (
        answer.stdout
    )
    told = [row[1] for row in pl.read_csv(skipped).iter_rows()]
    assert told == list(bad.values())
    assert pl.read_csv(skipped)["where"][0] == "row 1"
    assert len(stored("market_sale", product)) == 1


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("product_id,price\n", "lacks the columns condition, printing, language, quantity"),
        (
            "product_id,condition,printing,language,price,quantity\n",
            "lacks the columns sold_at or observed_at",
        ),
    ],
)
def test_a_file_without_the_columns_is_refused(run, written, header, said):
    answer = run(written("1,2,3,4,5,6", header=header))
    assert answer.exit_code != 0
    assert said in answer.output


def test_a_file_of_which_no_record_can_be_used_is_refused(run, written):
    answer = run(written(f"x,NM,Normal,English,1,1,{AT},{AT},"))
    assert answer.exit_code != 0
    assert "holds no usable record; row 1: product_id is not a number" in answer.output


def looks(owner_url, product):
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        return connection.execute(
            "SELECT sales_at, listings_at FROM market_look WHERE product_id = %s", [product]
        ).fetchone()


@pytest.mark.night
def test_the_newest_look_counts_whatever_comes_first(run, written, product, owner_url):
    sale = "{p},NM,Normal,English,1,1,2026-11-01T10:00:00Z,2026-11-{day}T10:00:00Z,"
    for day in (12, 14, 13):
        assert run(written(sale.format(p=product, day=day))).exit_code == 0
    assert looks(owner_url, product) == (moment(14), None)
    run(written(f"{product},NM,Normal,English,1,1,,,{AT}"))
    assert looks(owner_url, product) == (moment(14), moment(20))


@pytest.mark.night
def test_a_look_in_the_future_ends_with_the_next_import(run, written, product, owner_url):
    sale = "{p},NM,Normal,English,1,1,2026-11-01T10:00:00Z,{at},"
    run(written(sale.format(p=product, at="2099-01-01T00:00:00Z")))
    assert looks(owner_url, product)[0].year == 2099
    run(written(sale.format(p=product, at=AT)))
    assert looks(owner_url, product) == (moment(20), None)


def prices(owner_url, product):
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        return connection.execute(
            "SELECT printing, source, observed_at, market, low FROM market_price"
            " WHERE product_id = %s ORDER BY 1, 3",
            [product],
        ).fetchall()


def day(of):
    return datetime(2026, 11, of, tzinfo=UTC)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_tcgcsvs_daily_prices_take_their_day_from_the_name(run, tmp_path, owner_url, product, form):
    folder = tmp_path / "2026-11-20" / "3"
    folder.mkdir(parents=True)
    records = [
        {"productId": product, "lowPrice": 1.25, "marketPrice": 1.5, "subTypeName": "Holofoil"},
        {"productId": product, "lowPrice": None, "marketPrice": None, "subTypeName": "Normal"},
        {"productId": product, "lowPrice": 1, "marketPrice": 2, "subTypeName": "Sparkling"},
    ]
    if form == "csv":
        path = folder / "prices.csv"
        pl.DataFrame(records).write_csv(path)
    else:
        path = folder / "prices"
        path.write_text(json.dumps({"success": True, "results": records}))
    said = run(path).stdout
    assert "1 prices are new; 1 record was skipped" in said
    assert prices(owner_url, product) == [("Holofoil", "tcgcsv", day(20), 15_000, 12_500)]
    assert "0 prices are new" in run(path).stdout
    later = run(path, "--observed-at", "2026-11-21")
    assert "1 prices are new" in later.stdout


def test_tcgcsvs_prices_without_a_day_are_refused(run, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("productId,lowPrice,marketPrice,subTypeName\n1,1,1,Normal\n")
    answer = run(path)
    assert answer.exit_code != 0
    assert "--observed-at" in answer.output


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_mtgjsons_all_prices_need_the_ids_of_the_printings(
    run, tmp_path, owner_url, product, suffix
):
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    retail = {"normal": {"2026-11-19": 1.5, "2026-11-20": 1.75}, "foil": {"2026-11-20": 0}}
    told = {
        "uuid-1": {"paper": {"tcgplayer": {"retail": retail, "currency": "USD"}}, "mtgo": {}},
        "uuid-2": {"paper": {"cardmarket": {"retail": retail}}},
        "uuid-3": {"paper": {"tcgplayer": {"retail": retail}}},
    }
    path = tmp_path / f"AllPrices.json{suffix}"
    path.write_bytes(pack(json.dumps({"meta": {}, "data": told}).encode()))
    printings = tmp_path / f"AllPrintings.json{suffix}"
    card = {"uuid": "uuid-1", "identifiers": {"tcgplayerProductId": str(product)}}
    sets = {"XYZ": {"name": "A set", "cards": [card], "tokens": []}}
    printings.write_bytes(pack(json.dumps({"meta": {}, "data": sets}).encode()))
    refused = run(path)
    assert refused.exit_code != 0
    assert "--printings" in refused.output
    said = run(path, "--printings", printings)
    assert "2 prices are new; 2 records were skipped" in said.stdout, said.output
    assert prices(owner_url, product) == [
        ("Normal", "mtgjson", day(19), 15_000, None),
        ("Normal", "mtgjson", day(20), 17_500, None),
    ]
    assert "0 prices are new" in run(path, "--printings", printings).stdout


def test_a_broken_file_is_told_in_a_sentence(run, tmp_path):
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 is not all of it")
    answer = run(path)
    assert answer.exit_code != 0
    assert "broken.parquet cannot be read as parquet" in answer.output
    assert "Traceback" not in answer.output
