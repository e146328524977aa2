"""A field of a rule is declared once (`prices/engine/rules.py`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cardsync
from another_database import another_database
from builders import environment
from cardsync.platform.declared_fields import declared
from cardsync.prices.engine.rules import Rule

TESTS = Path(__file__).parents[2]
SOURCE = Path(cardsync.__file__).parent
# These modules read, show and store rules, and name no field that is simple.
DOORS = (
    "dashboard/templates/pricing_rule.html",
    "prices/inputs/rule_file.py",
    "prices/inputs/rule_json.py",
    "prices/inputs/rule_rows.py",
    "prices/plans/asked_data.py",
    "prices/rules/routes.py",
    "prices/rules/rule_sets.py",
    "prices/rules/schemas.py",
    "prices/rules/undo_rules.py",
)
# A promotion has that field, too; the page says where the other is edited.
ACTS = {
    "dashboard/templates/pricing_rule.html": {"market_gate"},
    "prices/plans/asked_data.py": {"floor_cost_bp"},
    "prices/rules/schemas.py": {"floor_cost_bp"},
}


@pytest.mark.day
def test_one_that_is_new_is_in_every_door(owner_url, settings):
    """This alone finds a door that has a list of fields of its own: it runs the program with one
    more field of a rule, in another process.
    """
    with another_database(owner_url, "new_rule_field") as url:
        told = environment(settings.model_copy(update={"database_url": url}))
        done = subprocess.run(
            [sys.executable, str(TESTS / "new_rule_field.py")],
            env=os.environ | told,
            capture_output=True,
            text=True,
        )
    assert done.stdout == "told\n", done.stderr


@pytest.mark.parametrize("door", DOORS)
def test_a_door_names_no_field_that_has_its_own_sentence(door):
    words = set(re.findall(r"\b[a-z_]+\b", (SOURCE / door).read_text()))
    own = {each.name for each in declared(Rule) if each.field.line or each.field.says}
    # Words of the house, and the fields' names of promotions.
    own -= {"floor", "ceiling", "stale"}
    assert words & own == ACTS.get(door, set())
