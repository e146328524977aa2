"""No door writes prices by itself: each goes through `prices/plans/writes.py`, which holds the loss limits."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "cardsync"
DOORS = sorted(
    path
    for path in SOURCES.rglob("*.py")
    if (path.parent.name == "pages" and "dashboard" in path.parts)
    or path.stem.endswith(("routes", "pages", "commands"))
)
# The operations by the module that has them, as doors could call them.
OPERATIONS = {
    "rule_sets": {"create", "change", "remove", "reorder", "apply_preset"},
    "sale_sets": {
        "create_sale", "change_sale", "remove_sale", "change_settings", "pin", "unpin",
    },
    "shown_changes": {"change_rule", "reorder", "change_settings"},
    "pin_many": {"pin_many", "unpin_many"},
    "reprice": {"request", "settle_review"},
    "prepare": {"request"},
    "entries": {"add_cards", "remove_cards"},
    "seller_lists": {"create_list", "rename_list", "delete_list"},
    "publish_drafts": {"publish"},
    "decide_proposals": {"decide", "take_back"},
    "accept_recommendation": {"put_back"},
    "accept_reviews": {"put_back"},
    "set_targets": {"apply_targets"},
}  # fmt: skip
# What rules may ask: keys and tokens write it through the limits, too. Pages are members'.
OF_KEYS = {
    "write_lots": {"add_by_hand", "add_by_file", "correct", "remove"},
    "chosen_match": {"settle_match"},
    "returned_copies": {"restock"},
}


def written_in(path: Path, operations: dict[str, set[str]] = OPERATIONS) -> set[str]:
    """The operations that the file imports or calls by their module's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").rpartition(".")[2]
            found |= {f"{module}.{name.name}" for name in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
    return {f"{module}.{name}" for module, names in operations.items() for name in names} & found


def test_there_are_doors_to_look_at():
    assert {"routes.py", "pricing_sales.py"} <= {path.name for path in DOORS}
    # The look finds a call where there is one.
    assert "rule_sets.create" in written_in(SOURCES / "prices" / "plans" / "writes.py")


@pytest.mark.parametrize("path", DOORS, ids=lambda path: str(path.relative_to(SOURCES)))
def test_a_door_writes_prices_by_the_one_way(path):
    assert not written_in(path)


@pytest.mark.parametrize("module", OF_KEYS)
def test_a_route_writes_what_rules_ask_by_the_one_way(module):
    operations = {module: OF_KEYS[module]}
    assert written_in(SOURCES / "prices" / "plans" / "writes.py", operations)
    doors = {path: written_in(path, operations) for path in DOORS if path.stem.endswith("routes")}
    assert not any(doors.values()), doors
