"""Asks the person questions at the terminal: each has a default, and is repeated until the answer
is valid. Without a terminal every answer is the default.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from cardsync_agent.usage import UsageProblem

T = TypeVar("T")


class NoAnswer(Exception):
    """The person ended the questions by Ctrl-C or the end of the input."""


class Questions:
    """`check` converts an answer to its value, or raises UsageProblem. The problem's sentence is
    then shown, and the question is asked again; without a terminal, the problem is raised.
    """

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def text(self, question: str, default: str, check: Callable[[str], T]) -> T:
        shown = f" [{default}]" if default else ""
        return self._until_right(lambda: _line(f"{question}{shown}: ") or default, default, check)

    def secret(self, question: str, default: str, check: Callable[[str], T]) -> T:
        """Ask without an echo; the default is not shown."""
        kept = " [Enter keeps the present one]" if default else ""
        return self._until_right(lambda: _hidden(f"{question}{kept}: ") or default, default, check)

    def choice(self, question: str, options: Sequence[tuple[str, str]], default: str) -> str:
        """Ask for one of the options, each a word and its meaning."""
        if self.asks:
            sys.stdout.write(f"{question}\n")
            for word, meaning in options:
                sys.stdout.write(f"  {word:<10} {meaning}\n")
        return self.text("Which one", default, lambda answer: _one_of(answer, options))

    def agree(self, question: str, *, default: bool = True) -> bool:
        word = "y" if default else "n"
        options = (("yes", ""), ("no", ""))
        check = lambda answer: _one_of(answer.lower(), options) == "yes"  # noqa: E731
        return self.text(f"{question} (y/n)", word, check)

    def _until_right(self, ask: Callable[[], str], default: str, check: Callable[[str], T]) -> T:
        if not self.asks:
            return check(default)
        while True:
            try:
                return check(ask())
            except UsageProblem as problem:
                sys.stdout.write(f"  {problem}\n")
            except (EOFError, KeyboardInterrupt):
                sys.stdout.write("\n")
                raise NoAnswer from None


def _one_of(answer: str, options: Sequence[tuple[str, str]]) -> str:
    """Return the option that begins with the answer."""
    matching = [word for word, _ in options if answer and word.startswith(answer)]
    if len(matching) != 1:
        raise UsageProblem("answer with " + " or ".join(word for word, _ in options))
    return matching[0]


def _line(prompt: str) -> str:
    return input(prompt).strip()


def _hidden(prompt: str) -> str:
    return getpass.getpass(prompt).strip()
