"""Defines the four presets: ordinary rules for every card, at the priority of the default rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.prices.engine.rules import Cap, InvalidRule, Rule, SmallCap, Stale

PresetName = Literal["premium", "competitive", "move", "buy-box"]


def _daily(bp: int, small_bp: int) -> Cap:
    return Cap(
        bp,
        bp,
        small=SmallCap(below=50_000, up_bp=small_bp, down_bp=small_bp),
    )


_PRESET = Rule(id=0, name="", priority=DEFAULT_PRIORITY, state="published")
PRESETS: Final[dict[PresetName, Rule]] = {
    "premium": replace(
        _PRESET,
        name="Premium",
        fallback_sources=("low",),
        adjust_bp=500,
        never_lower=True,
        undercut_up_bp=500,
        cap=_daily(1_500, 1_000),
    ),
    "competitive": replace(
        _PRESET,
        name="Competitive",
        fallback_sources=("low",),
        adjust_bp=-100,
        never_lower=True,
        undercut_up_bp=100,
        cap=_daily(2_000, 1_500),
    ),
    "move": replace(
        _PRESET,
        name="Sell-through",
        price_source="low",
        fallback_sources=("market",),
        stale=Stale(after_days=60, step_bp=500, every_days=7, limit_bp=4_000),
        cap=_daily(2_500, 5_000),
    ),
    "buy-box": replace(
        _PRESET,
        name="Lowest price",
        price_source="low_with_shipping",
        fallback_sources=("low", "market"),
        adjust_bp=-200,
        cap=_daily(3_000, 5_000),
    ),
}


def preset_rule(name: str) -> Rule:
    """Return the rule of a preset; its id is 0 until it is saved."""
    for preset, rule in PRESETS.items():
        if preset == name:
            return rule
    raise InvalidRule("preset", f"must be one of {', '.join(PRESETS)}")
