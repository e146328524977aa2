"""Reads the commands of the documentation: blocks of a shell, and mentions of our own programs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from cardsync.cli import program
from cardsync_agent.cli import _parser

DOCS = Path(__file__).parents[1] / "docs"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MENTION = re.compile(r"`((?:\.venv/bin/)?cardsync(?:-agent)? [^`]+)`")
# What the program says, and the head of what is signed.
_NO_COMMANDS = ("cardsync needs Python 3.11 or newer", "cardsync workflow pack v1")


def pages_of(*parts: str) -> list[Path]:
    """The files of docs in these parts of the navigation."""
    text = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    nav = yaml.safe_load(text)["nav"]
    names = [
        page for part in nav for name, pages in part.items() if name in parts for page in pages
    ]
    return [DOCS / name for name in names if not name.startswith("project/")]


def shell_of(page: Path) -> str:
    """All that the page lets one run, in its order."""
    return "\n".join(text for kind, text in _FENCE.findall(page.read_text("utf-8")) if kind == "sh")


def mentions(page: Path) -> Iterator[str]:
    """Each command of ours in a block or in a sentence."""
    text = page.read_text("utf-8")
    for _, block in _FENCE.findall(text):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if found := re.match(r"\s*(?:\S+=\S* )*(?:\S*/)?(cardsync(?:-agent)? [a-z-].*)", line):
                yield re.sub(r"\s{2,}#.*|\s&$|\s[|>] .*|\s\|\| .*", "", found[1])
    for found in _MENTION.finditer(_FENCE.sub("", text)):
        command = found[1].replace("\n", " ").removeprefix(".venv/bin/")
        if command not in _NO_COMMANDS:
            yield command


def fault_of(command: str) -> str | None:
    """Say what of a command does not exist; None where all of it does."""
    words = shlex.split(command.replace("…", "").replace("[", "").replace("]", ""))
    if words[0] == "cardsync-agent":
        return _agent_fault(words[1:])
    here: click.Command = program
    context = click.Context(here)
    rest = words[1:]
    while isinstance(here, click.Group) and rest and not rest[0].startswith("-"):
        name = rest[0]
        there = here.get_command(context, name)
        if there is None and here.name == "price":
            # `price FILE` is the short form of `price file FILE`.
            rest = ["file", *rest]
            continue
        if there is None:
            return f"no command {name}"
        here, rest = there, rest[1:]
    options = {name for it in here.get_params(context) for name in (*it.opts, *it.secondary_opts)}
    unknown = [word for word in rest if word.startswith("--") and word.split("=")[0] not in options]
    return f"no option {unknown[0]}" if unknown and unknown != ["--version"] else None


def _agent_fault(words: list[str]) -> str | None:
    help_of = _parser().format_help()
    if words and not words[0].startswith("-") and words[0] not in help_of:
        return f"no command {words[0]}"
    return None
