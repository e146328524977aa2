"""The modules that processes load: a worker loads nothing that only web processes need, as its
memory is for frames; a command nothing that it does not use, as imports take longer than most
commands.
"""

import json
import subprocess
import sys
from functools import cache

import pytest

from cardsync.cli import admin, program
from cardsync.operations.processes.commands_page import leaves

# Each would cost a worker some MB: webauthn 13, litestar 25.
FOREIGN = {"webauthn", "litestar", "granian", "jinja2", "segno", "alembic"}
FRAMES = {"polars", "numpy"}
DATABASE = {"psycopg", "sqlalchemy", "procrastinate", "pydantic", "structlog"}
SETTINGS = "Settings(database_url='postgresql:///')"
EXPORTING = f"""
from cardsync.platform.settings import Settings
from cardsync.platform.telemetry.exporting import exporting
exporting({SETTINGS}, 'web').__enter__()
"""
WEB = f"from cardsync.asgi import create_app{EXPORTING}create_app({SETTINGS})"
# The supervisor loads more than a worker may.
WORKER = (
    "import cardsync.operations.processes.worker",
    f"import cardsync.operations.processes.supervisor{EXPORTING}",
)


@cache
def loaded(*steps):
    """Run the steps in a process of their own, and return the modules that are there after each."""
    lines = ["import json, sys", "told = []"]
    for step in steps:
        lines += [step, "told.append([*sys.modules])"]
    code = "\n".join([*lines, "print(); print(json.dumps(told))"])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(modules) for modules in json.loads(ran.stdout.splitlines()[-1])]


def too_much(names, steps, unwanted):
    """Return the unwanted modules, by the name of the step after which they are there first."""
    found, seen = {}, set()
    for name, modules in zip(names, loaded(*steps), strict=True):
        if new := (modules & unwanted) - seen:
            found[name] = new
        seen |= modules
    return found


def test_a_worker_loads_no_library_of_web_processes():
    [modules, _] = loaded(*WORKER)
    assert not FOREIGN & modules


def test_a_web_process_without_assistants_loads_nothing_of_theirs():
    """The protocol's library would cost it 20 MB, and a second of its start."""
    [modules] = loaded(WEB)
    assert not {"mcp", "mcp_types", "starlette.routing", "pydantic_monty"} & modules


def test_without_a_receiver_no_process_loads_opentelemetry():
    """It would cost each of them 15 MB, and a quarter of a second of its start. Litestar looks for
    its own plugin, and finds the names of some attributes on the way.
    """
    [_, modules], [web] = loaded(*WORKER), loaded(WEB)
    assert not [name for name in modules if name.partition(".")[0] == "opentelemetry"]
    parts = {name for name in web if name.startswith("opentelemetry.")}
    assert all(name.startswith("opentelemetry.semconv") for name in parts)


def test_help_of_each_command_loads_the_command_line_alone():
    words = [[], ["admin"], *([*words[1:]] for words, _ in leaves(program, ("cardsync",)))]
    steps = [
        f"from cardsync.cli import program; program({[*one, '--help']}, standalone_mode=False)"
        for one in words
    ]
    assert too_much(map(" ".join, words), steps, FOREIGN | FRAMES | DATABASE | {"httpx"}) == {}


# The modules that each command loads where it runs, beside the database that all have.
RUNS = {
    "admin key list": "from cardsync.access import keys",
    "admin operator list": "from cardsync.shop.operators import appoint",
    "catalog list": "from cardsync.catalog import overview, update_times",
    "backup list": "from cardsync.platform.backups import backup_folder; from cardsync.operations import backup_bucket",
}
BESIDE_ALL = (
    "from cardsync.operations.processes.command_line import _load_logs; _load_logs()",
    "import cardsync.platform.database.session, cardsync.operations.processes.supervisor, cardsync.platform.logs",
)


def test_a_command_that_lists_loads_no_frames_and_nothing_of_web_processes():
    steps = [*BESIDE_ALL, *RUNS.values()]
    unwanted = FOREIGN | FRAMES | {"httpx", "procrastinate", "rich", "argon2"}
    assert too_much(["logs", "database", *RUNS], steps, unwanted) == {}


@pytest.mark.parametrize("group", [program, admin], ids=["program", "admin"])
def test_a_command_of_another_module_has_its_own_line_in_the_list(group):
    for name, command in group.elsewhere.items():
        told = group.get_command(None, name).help.partition("Example:")[0]
        assert command.line == " ".join(told.split()), name
