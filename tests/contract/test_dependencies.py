"""What the code imports is what its package asks for: a wheel brings nothing else along."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PROJECTS = {
    "cardsync": (TOP, "src", ("cardsync", "cardsync_demo")),
    "cardsync-agent": (TOP / "agent", "src/cardsync_agent", ("cardsync_agent",)),
}
# Asked for by what is asked for, as a part of it; and playwright is an extra.
BROUGHT = {
    "psycopg-pool": "psycopg",
    "mcp-types": "mcp",
    "pydantic-monty-client": "pydantic-monty",
}


def imported(folder: Path) -> set[str]:
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("name", PROJECTS)
def test_every_package_that_is_imported_is_asked_for(name):
    project, folder, own = PROJECTS[name]
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    lists = [declared["dependencies"], *declared.get("optional-dependencies", {}).values()]
    asked = {
        re.split(r"[\[<>=;~ ]", one)[0].lower().replace("_", "-") for some in lists for one in some
    }
    whose = packages_distributions()
    missing = {}
    for module in imported(project / folder) - sys.stdlib_module_names - set(own):
        packages = {one.lower().replace("_", "-") for one in whose.get(module, [module])}
        if not packages & asked and not {BROUGHT.get(one) for one in packages} & asked:
            missing[module] = packages
    # The agent is beside the server in the demo alone, and the client is what it writes.
    assert {module: it for module, it in missing.items() if module not in OURS} == {}


OURS = {"cardsync_agent", "cardsync_client"}
