"""A run's receipts as a file: the same inputs give the same bytes, and a run that is read from its
file gives the same prices.
"""

from __future__ import annotations

import io
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pricing_reference import (
    NOW,
    a_card,
    frame_of,
    random_card,
    random_rule,
    random_sale,
    random_seller,
)

from cardsync.prices.engine.engine import INPUT_COLUMNS, RECEIPT_COLUMNS, price
from cardsync.prices.engine.rules import Cap, Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.receipts import parquet_file
from cardsync.prices.receipts.sentences import explain

seeds = st.integers(0, 2**32)
TEXTS = ("condition", "printing", "language")


def a_run(seed: int, count: int = 30) -> tuple[pl.DataFrame, Run]:
    """Cards priced by random rules, each governed by any of them, as queries would have it."""
    rng = random.Random(seed)
    seller = random_seller(rng)
    run = Run(
        [random_rule(rng, number) for number in (1, 2, 3)], seller, NOW, [random_sale(rng, 1)]
    )
    cards = frame_of([random_card(rng, number, seller) for number in range(count)])
    governing = [rng.choice([None, *(rule.id for rule in run.live)]) for _ in range(count)]
    on_sale = [rng.choice([None, *(sale.id for sale in run.active_sales)]) for _ in range(count)]
    resolved = cards.with_columns(
        rule_id=pl.Series(governing, dtype=pl.Int64), sale_id=pl.Series(on_sale, dtype=pl.Int64)
    )
    return price(resolved, run.rules, run.seller, run.now, run.sales), run


@pytest.mark.day
@given(seeds)
@settings(deadline=None, max_examples=25)
def test_any_run_comes_out_of_its_file_to_the_same_prices(seed):
    priced, run = a_run(seed)
    assert parquet_file.replay(parquet_file.pack([priced], run)) == 0


def test_receipts_of_a_run_before_caps_had_a_least_step_follow_from_themselves():
    cap = Cap(1_500, 1_500)
    run = Run([Rule(1, "", 1, state="published", cap=cap)], SellerPricing(minimum_cap_step=0), NOW)
    cards = frame_of([a_card(current_price=600, market=2_900)])
    data = parquet_file.pack([price(cards, run.rules, run.seller, NOW)], run)
    then = pl.read_parquet_metadata(data)["cardsync.run"]
    assert '"minimum_cap_step":0,' in then
    out = io.BytesIO()
    kept = {"cardsync.run": then.replace('"minimum_cap_step":0,', "")}
    pl.read_parquet(data).write_parquet(out, metadata=kept)
    assert parquet_file.run_of(out.getvalue()).seller.minimum_cap_step == 0
    assert parquet_file.replay(out.getvalue()) == 0
    today = {"cardsync.run": then.replace('"minimum_cap_step":0,', '"minimum_cap_step":500,')}
    again = io.BytesIO()
    pl.read_parquet(data).write_parquet(again, metadata=today)
    assert parquet_file.replay(again.getvalue()) == 1


@given(seeds)
@settings(deadline=None, max_examples=25)
def test_a_file_gives_back_what_was_put_in(seed):
    priced, run = a_run(seed)
    frame, again = parquet_file.unpack(parquet_file.pack([priced], run))
    assert (again.rules, again.sales, again.seller, again.now) == (
        run.rules,
        run.sales,
        run.seller,
        run.now,
    )
    kept = ("blockers", "rule_id", "source", "base", "target", "changed", "sale_id", *INPUT_COLUMNS)
    wanted = priced.sort("marketplace_id").select(name for name in kept if name not in TEXTS)
    assert frame.select(wanted.columns).equals(wanted)


@given(seeds)
@settings(deadline=None, max_examples=25)
def test_a_receipt_tells_the_same_story_as_the_run_itself(seed):
    priced, run = a_run(seed)
    frame, again = parquet_file.unpack(parquet_file.pack([priced], run))
    kept = frame.sort("marketplace_id").to_dicts()
    for live, row in zip(priced.sort("marketplace_id").to_dicts(), kept, strict=True):
        assert explain(row, again) == explain(live, run)


@pytest.mark.day
@given(seeds)
@settings(deadline=None, max_examples=25)
def test_the_same_inputs_give_the_same_bytes_in_whatever_order_they_come(seed):
    priced, run = a_run(seed)
    first = parquet_file.pack([priced], run)
    assert (
        parquet_file.pack([priced.sample(fraction=1, shuffle=True, seed=seed % 1000)], run) == first
    )
    assert parquet_file.pack([a_run(seed)[0]], run) == first


@pytest.mark.day
@given(seeds)
@settings(deadline=None, max_examples=25)
def test_a_price_that_was_meddled_with_is_found(seed):
    priced, run = a_run(seed)
    meddled = pl.when(pl.col("marketplace_id") == priced["marketplace_id"].max())
    wrong = priced.with_columns(
        meddled.then(pl.col("target").fill_null(0) + 100).otherwise("target").alias("target")
    )
    assert parquet_file.replay(parquet_file.pack([wrong], run)) == 1


def test_one_card_is_read_without_the_others():
    priced, run = a_run(7)
    data = parquet_file.pack([priced], run)
    for row in priced.select("marketplace_id", "target").iter_rows(named=True):
        found = parquet_file.receipt(data, row["marketplace_id"])
        assert found is not None
        assert found["target"] == row["target"]
        assert found.keys() >= RECEIPT_COLUMNS.keys()
    assert parquet_file.receipt(data, 10**9) is None
