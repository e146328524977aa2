"""The modules that processes load: a worker loads nothing that only web processes need, as its memory is for frames;
a command nothing that it does not use, as imports take longer than most commands.
"""

import subprocess
import sys

import pytest

from cardsync.cli import admin, program

# Each would cost a worker some MB: webauthn 13, litestar 25.
FOREIGN = {"webauthn", "litestar", "granian", "jinja2", "segno", "alembic"}
FRAMES = {"polars", "numpy"}
DATABASE = {"psycopg", "sqlalchemy", "procrastinate", "pydantic", "structlog"}


def loaded(code):
    told = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(told.stdout.splitlines()[-1].split())


def test_a_worker_loads_no_library_of_web_processes():
    assert not FOREIGN & loaded("import cardsync.processes.worker")


def test_a_web_process_without_assistants_loads_nothing_of_theirs():
    """The protocol's library would cost it 20 MB, and a second of its start."""
    modules = loaded(
        "from cardsync.asgi import create_app; from cardsync.settings import Settings;"
        " create_app(Settings(database_url='postgresql:///'))"
    )
    assert not {"mcp", "mcp_types", "starlette.routing", "pydantic_monty"} & modules


def telemetry_of(code):
    return {name for name in loaded(code) if name.partition(".")[0] == "opentelemetry"}


def test_without_a_receiver_no_process_loads_opentelemetry():
    """It would cost each of them 15 MB, and a quarter of a second of its start. Litestar looks for
    its own plugin, and finds the names of some attributes on the way.
    """
    settings = "Settings(database_url='postgresql:///')"
    exporting = (
        "from cardsync.telemetry.exporting import exporting; from cardsync.settings import Settings;"
        f" exporting({settings}, 'web').__enter__()"
    )
    processes = "import cardsync.processes.supervisor, cardsync.processes.worker"
    assert telemetry_of(f"{processes}; {exporting}") == set()
    web = telemetry_of(f"from cardsync.asgi import create_app; {exporting}; create_app({settings})")
    assert all(name.startswith("opentelemetry.semconv") for name in web - {"opentelemetry"})


@pytest.mark.parametrize("words", [["--help"], ["admin", "--help"], ["serve", "--help"]])
def test_help_loads_the_command_line_alone(words):
    modules = loaded(f"from cardsync.cli import program; program({words}, standalone_mode=False)")
    assert not (FOREIGN | FRAMES | DATABASE) & modules


@pytest.mark.parametrize("group", admin.elsewhere)
def test_an_admin_command_loads_no_frames_and_nothing_of_web_processes(group):
    modules = loaded(f"from cardsync.cli import admin; admin.get_command(None, {group!r})")
    assert not (FOREIGN | FRAMES) & modules


@pytest.mark.parametrize("group", [program, admin], ids=["program", "admin"])
def test_a_command_of_another_module_has_its_own_line_in_the_list(group):
    for name, command in group.elsewhere.items():
        told = group.get_command(None, name).help
        assert command.line == " ".join(told.split()), name
