"""Collects every sentence that a page can show, from the templates and the program's modules, so
that one person can read all of them (`cardsync texts`).

In a text, `…` is a value that the page fills in, and ` / ` separates alternatives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, NamedTuple

import jinja2

SOURCE: Final = Path(__file__).parents[1]
TEMPLATES: Final = tuple(sorted(SOURCE.glob("**/templates")))
# The texts in these rooms and modules are for a terminal or a program, not for a page, or are words
# that people type.
NOT_PAGES: Final = (
    "operations/processes/",
    "assistant/",
    "catalog/",
    "cli.py",
    "platform/setting_groups/",
    "web/openapi",
    "dashboard/goals.py",
    "operations/distribute.py",
    "operations/cluster_checks.py",
    "agents/repairs/label_words.py",
    "agents/repairs/lost_element.py",
)
NOT_PAGE_FILES: Final = ("commands.py", "routes.py")
VALUE: Final = "…"
_SHOWN: Final = ("title", "aria-label", "placeholder", "alt", "data-command", "label")
# A script contains no sentences: the page passes it the texts that it shows.
_BY_SCRIPT: Final = "data-text-"
# A sentence continues across these inline elements.
_INLINE: Final = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "code",
        "em",
        "i",
        "kbd",
        "small",
        "span",
        "strong",
        "time",
        "var",
        "wbr",
    ]
)
_SQL: Final = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|JOIN|VALUES|CREATE|ALTER|SET|AND|NULL|CASE|IN|CAST)\b"
    r"|\bcoalesce\("
)
_WORDS: Final = re.compile(r"[A-Za-z’']{2,}[],.:;!?…]* +\S")
_MACHINE: Final = re.compile(r"^[/.@]|^#\w|[{}<>\\^$*=]|[a-z]_[a-z]|::|https?:|^[^[]*\w\|\w|-src ")


class PageText(NamedTuple):
    """A text and its position: the file below src/cardsync and the line."""

    file: str
    line: int
    text: str


def collect() -> list[PageText]:
    """Return all texts, sorted by file and line."""
    found = [one for folder in TEMPLATES for path in folder.glob("*.html") for one in _page(path)]
    modules = (
        path
        for path in SOURCE.rglob("*.py")
        if not _name(path).startswith(NOT_PAGES) and not path.name.endswith(NOT_PAGE_FILES)
    )
    return sorted({*found, *(one for path in modules for one in _module(path))})


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _page(path: Path) -> Iterator[PageText]:
    html, strings = _html_of(path.read_text(encoding="utf-8"))
    reader = _Reader()
    reader.feed(html)
    reader.close()
    for line, text in [*reader.found, *strings]:
        yield PageText(_name(path), line, text)


def _html_of(source: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the template's HTML with `…` in place of its values, and the texts that it passes to
    macros.
    """
    html: list[str] = []
    strings: list[tuple[int, str]] = []
    in_value = False
    for line, kind, value in jinja2.Environment(autoescape=True).lex(source):
        if kind == "data":
            html.append(value)
        elif kind == "variable_begin":
            in_value = True
            html.append(VALUE)
        elif kind == "variable_end":
            in_value = False
        elif kind == "name" and value in ("else", "elif") and not in_value:
            html.append(" / ")
        elif kind == "string" and _is_text(str(ast.literal_eval(value))):
            strings.append((line, str(ast.literal_eval(value))))
        # Each line of the HTML keeps its number in the template.
        if kind != "data":
            html.append("\n" * value.count("\n"))
    return "".join(html), strings


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._words: list[str] = []
        self._line = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self._end()
        for name, value in attrs:
            if (name in _SHOWN or name.startswith(_BY_SCRIPT)) and value:
                self._add(self.getpos()[0], value)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self._words:
            blank = data[: len(data) - len(data.lstrip())]
            self._line = self.getpos()[0] + blank.count("\n")
        self._words.append(data)

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        self._add(self._line, "".join(self._words))
        self._words = []

    def _add(self, line: int, text: str) -> None:
        shown = " ".join(text.split()).strip("/ ")
        if re.search(r"[A-Za-z]{2}", shown):
            self.found.append((line, shown))


def _is_text(value: str) -> bool:
    """Return whether a string in a template is a text for people: a name or several words."""
    return bool(re.match(r"[A-Z][a-z]", value) or _is_sentence(value))


def _module(path: Path) -> Iterator[PageText]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {id(node) for root in ast.walk(tree) for node in _hidden(root)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        text = _text_of(node)
        if text is not None and _is_sentence(text) and not _SQL.search(text):
            yield PageText(_name(path), getattr(node, "lineno", 1), " ".join(text.split()))


def _hidden(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the strings below a node that no page shows: docstrings, and the constant parts of
    f-strings.
    """
    if isinstance(node, ast.Expr):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield from node.values
    # This argument describes a setting in the API's documents (`access/declared_settings.py`).
    if isinstance(node, ast.keyword) and node.arg == "api":
        yield from ast.walk(node.value)
    if isinstance(node, ast.Call) and _is_for_programs(node.func):
        yield from ast.walk(node)


def _is_for_programs(function: ast.expr) -> bool:
    """Return whether a call's strings are for the log, the database or a regular expression."""
    called = ast.unparse(function)
    return called in ("text", "re.compile", "RuntimeError", "ValueError") or called.startswith(
        "log."
    )


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else VALUE for part in node.values)
        return "".join(map(str, parts))
    return None


def _is_sentence(value: str) -> bool:
    return bool(_WORDS.search(value)) and not _MACHINE.search(value)
