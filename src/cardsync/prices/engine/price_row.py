"""Prices the row of one card by the steps of the engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cardsync.prices.engine.engine import (
    INPUT_COLUMNS,
    PRICE_INPUTS,
    RECEIPT_COLUMNS,
    RESOLVED,
    governing,
    need_columns,
    need_known,
    run_for,
    sale_of,
    stages,
)
from cardsync.prices.engine.row_values import evaluated, of_row
from cardsync.prices.engine.run_inputs import Run, parameters_of


def price_row(card: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Price a card, the row of a frame that `engine.price` takes with the columns of its inputs in
    their types, and return the row that `engine.price` would return.
    """
    run = run_for(run.rules, run.seller, run.now, run.sales)
    row = _inputs(card)
    columns = [name for name in row if name not in RESOLVED]
    with of_row(row):
        row |= evaluated(governing(run, card))
        if "rule_id" in card:
            need_known("rule_id", [row["rule_id"]], run)
        sale_id = None
        if run.on_sale:
            if "sale_id" in card:
                need_known("sale_id", [card["sale_id"]], run)
            sale_id = evaluated([sale_of(run, card)])["sale_id"]
        row |= parameters_of(run, row["rule_id"], sale_id)
        for made in stages(run, guards_known="guards" in card):
            row |= evaluated(made)
    return {name: row.get(name) for name in (*columns, *RECEIPT_COLUMNS)}


def _inputs(card: Mapping[str, Any]) -> dict[str, Any]:
    need_columns(card)
    row = {
        name: value
        for name, value in card.items()
        if name in RESOLVED or name not in RECEIPT_COLUMNS
    }
    for name in INPUT_COLUMNS:
        row.setdefault(name, None)
    for name in PRICE_INPUTS:
        if row[name] is not None and row[name] <= 0:
            row[name] = None
    return row
