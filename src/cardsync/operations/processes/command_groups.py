"""Groups of commands that load the commands of other modules when they are called, and convert
errors into one sentence.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    pass


class Command(NamedTuple):
    """A command of another module, `module:attribute`, and its line in the list of commands."""

    place: str
    line: str


class Elsewhere(click.Group):
    """A group that loads the commands of other modules when they are called: the list of commands
    needs only their lines.
    """

    def __init__(
        self,
        *args: Any,
        elsewhere: dict[str, Command] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.elsewhere = elsewhere or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.elsewhere:
            module, _, attribute = self.elsewhere[cmd_name].place.partition(":")
            # Importing modules creates no garbage, and collecting it takes a fifth of a start.
            collects = gc.isenabled()
            gc.disable()
            try:
                found: click.Command = getattr(import_module(module), attribute)
            finally:
                gc.freeze()
                if collects:
                    gc.enable()
            return found
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: click.Command(name, help=it.line) for name, it in self.elsewhere.items()}
        click.Group(commands={**self.commands, **lines}).format_commands(ctx, formatter)


class Program(Elsewhere):
    """Converts expected errors into one sentence and exit status 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            # click itself ends a command by these exceptions (`admin --help`); the last two are
            # RuntimeErrors.
            raise
        except Exception as e:
            sentence = _sentence(e)
            if sentence is None:
                raise
            raise click.ClickException(sentence) from e


def _sentence(e: Exception) -> str | None:
    """Return the sentence of an error. Return None for a bug in the program."""
    from pydantic import ValidationError

    from cardsync.operations.processes.embedded_host import EmbeddedError
    from cardsync.platform import errors

    match e:
        case errors.CommandError() | EmbeddedError() | errors.Problem():
            return str(e)
        case BrokenPipeError():
            return None
        case OSError():
            return f"{e.filename}: {e.strerror}" if e.filename else str(e)
        case ValidationError():
            first = e.errors()[0]
            name = "_".join(str(part) for part in first["loc"]).upper()
            message = first["msg"].removeprefix("Value error, ")
            return f"setting CARDSYNC_{name}: {message}"
        case RuntimeError():
            return str(e)
    return None
