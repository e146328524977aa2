"""Each command prints JSON where it prints data, by the one way that all have; has an example that
its own parser takes; and ends with a status of docs/commands.md.
"""

import json
import shlex
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cardsync.cli import program
from cardsync.operations.processes.command_line import EXIT_CODES, Result, prints
from cardsync.operations.processes.commands_page import (
    commands_page,
    leaves,
    line_and_example,
    takes_json,
)

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
# Servers, and what prints a file of its own form.
WITHOUT_DATA = {
    "serve",
    "worker",
    "demo",
    "assistants",
    "commands",
    "completion",
    "openapi",
    "troubleshooting",
}
COMMANDS = {" ".join(words[1:]): command for words, command in leaves(program, ("cardsync",))}


def test_each_command_that_prints_data_takes_json_by_the_one_way():
    assert len(COMMANDS) > 50
    by_one_way = {
        name for name, command in COMMANDS.items() if getattr(command.callback, "prints", False)
    }
    assert by_one_way == {name for name, command in COMMANDS.items() if takes_json(command)}
    assert COMMANDS.keys() - by_one_way == WITHOUT_DATA


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_the_command_takes(name):
    command = COMMANDS[name]
    shown = CliRunner().invoke(program, [*name.split(), "--help"], terminal_width=200)
    assert (shown.exit_code, shown.stdout.count("  Example: ")) == (0, 1), shown.output
    line, example = line_and_example(command)
    assert line
    words = shlex.split(example.partition(" > ")[0])
    # A setting may stand before the program.
    given = words[words.index("cardsync") + 1 :]
    own = name.split()
    assert given[: len(own)] == own
    context = click.Context(command)
    values, left, _ = command.make_parser(context).parse_args(given[len(own) :])
    needed = [one.name for one in command.params if one.required and not values.get(one.name or "")]
    assert (left, needed) == ([], [])


def test_the_page_in_git_is_what_the_program_prints():
    printed = CliRunner().invoke(program, ["commands"])
    assert printed.exit_code == 0
    assert PAGE.read_text("utf-8") == printed.output == commands_page(program), "run: make openapi"
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in printed.output
        assert meaning in " ".join(CliRunner().invoke(program, ["--help"]).output.split())


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--version", 0),
        ("price explain 1 --server http://127.0.0.1:9", 1),
        ("price explain 1 --wrong", 2),
        ("price explain one", 2),
        ("admin key create", 2),
        ("admin key make", 2),
    ],
)
def test_the_status_says_how_a_command_ended(words, status, monkeypatch):
    monkeypatch.delenv("CARDSYNC_API_KEY", raising=False)
    ended = CliRunner().invoke(program, words.split())
    assert (ended.exit_code, bool(ended.stderr)) == (status, status > 0)


@pytest.mark.parametrize("failed", [False, True])
def test_a_result_is_lines_or_one_object(failed):
    data = {
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "price": Decimal("1.50"),
        "file": Path("a.csv"),
        "nothing": None,
        "names": ["Jötun"],
    }

    @click.command()
    @prints
    @click.option("--bare", is_flag=True)
    def command(bare: bool) -> Result:
        return Result(data, None if bare else ["two", "lines"], failed)

    run = CliRunner().invoke
    assert run(command).stdout == "two\nlines\n"
    assert run(command, ["--bare"]).stdout.splitlines()[:4] == [
        "at       2026-01-02T03:04:05Z",
        "price    1.50",
        "file     a.csv",
        "nothing  -",
    ]
    for options in (["--json"], ["--json", "--bare"]):
        ended = run(command, options)
        assert ended.exit_code == failed
        assert json.loads(ended.stdout) == {
            "at": "2026-01-02T03:04:05Z",
            "price": "1.50",
            "file": "a.csv",
            "nothing": None,
            "names": ["Jötun"],
        }


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": "cardsync admin key l", "COMP_CWORD": "3"}),
        ("zsh", {"COMP_WORDS": "cardsync admin key l", "COMP_CWORD": "3"}),
        ("fish", {"COMP_WORDS": "cardsync admin key", "COMP_CWORD": "l"}),
    ],
)
def test_a_shell_completes_the_commands_of_other_modules(shell, environment, monkeypatch, capsys):
    script = CliRunner().invoke(program, ["completion", shell])
    assert (script.exit_code, "_CARDSYNC_COMPLETE" in script.stdout) == (0, True)
    for name, value in {"_CARDSYNC_COMPLETE": f"{shell}_complete", **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        program(prog_name="cardsync")
    answer = capsys.readouterr().out
    assert "list" in answer
    assert "revoke" not in answer
