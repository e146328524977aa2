"""Prints docs/commands.md from the commands themselves: exit statuses, and each command with its
line and its example.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from cardsync.operations.processes.command_line import EXIT_CODES

EXAMPLE = "Example: "
_HEAD = """\
# Commands

Each command shows its options with `--help`. Commands that print data take `--json`: they print one
JSON object on standard output instead of lines for people. Progress and errors go to standard error,
so that a script reads the object alone. `cardsync completion bash` prints the script that completes
commands and options in bash; zsh and fish have theirs, too.

This page is printed by `cardsync commands`.

## Exit statuses

| status | meaning |
|---|---|
"""


def leaves(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command that is not a group, with its words, in list order."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        if each is not None and not each.hidden:
            yield from leaves(each, (*words, name))


def line_and_example(command: click.Command) -> tuple[str, str]:
    """Return the first paragraph of a command's help, and its example, empty if there is no
    example.
    """
    text = inspect.cleandoc(command.help or "")
    line = " ".join(text.partition("\n\n")[0].split())
    return line, " ".join(text.partition(EXAMPLE)[2].split())


def takes_json(command: click.Command) -> bool:
    return any("--json" in option.opts for option in command.params)


def commands_page(program: click.Command) -> str:
    lines = [_HEAD + "\n".join(f"| {code} | {said} |" for code, said in EXIT_CODES.items()), ""]
    lines += ["## All commands", "", "| command | what it does | `--json` | example |"]
    lines.append("|---|---|---|---|")
    for words, command in leaves(program, ("cardsync",)):
        line, example = line_and_example(command)
        json = "yes" if takes_json(command) else "–"
        lines.append(f"| `{' '.join(words[1:])}` | {line} | {json} | `{example}` |")
    return "\n".join(lines) + "\n"
