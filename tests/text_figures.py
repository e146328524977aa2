"""Measures how dense the text of src is, and how long and deep its functions are: `python tests/text_figures.py` prints
them.

Tokens a code line: what Python's tokenizer finds, divided by the lines that hold any of it.
Docstrings, comments and blank lines are left out. Long lines: the share of all lines that have more
than 100 characters.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src"
BENCH = TESTS.parent / "bench"
MOST_CHARACTERS = 100
# A docstring that begins with one of these words is half a sentence.
DIALECT = re.compile(r"(Who|What|Whoever|Whatever|Of|Nobody|Some|So)\b")
# A module's docstring says what the module does: no riddle of what goes in and what comes out.
RIDDLE = re.compile(
    r"(Whether|How|Whom|Which|When|Why)\b|.*\b((goes?|comes?) (in|out)|in, [^.]* out)\b", re.DOTALL
)
# What Python's tokenizer finds in half the time; a comment is none of it.
TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
    | (?i:rb|br|fr|rf|[rbfu])?(?:
        \"{3}(?:[^\\]|\\.)*?\"{3} | '{3}(?:[^\\]|\\.)*?'{3}
        | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
    )
    | (?i:0[xob][\da-f_]+ | (?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[-+]?\d+)?j?)
    | \w+
    | -> | (?:\*\*|//|>>|<<|[-+*/%@&|^=<>!:])=? | \.\.\. | [~()\[\]{},;.]
    """,
    re.VERBOSE | re.DOTALL,
)


class Said(NamedTuple):
    """A string that stands as a statement, and its place."""

    line: int
    column: int
    text: str
    is_docstring: bool


def tokens_a_code_line(files: Iterable[Path]) -> float:
    """Count the tokens of the files' code, and divide them by the lines that hold them. A statement
    is one text, in a module or in a file beside it.
    """
    tokens = lines = 0
    for file in files:
        text = file.read_text()
        if file.suffix == ".sql":
            of_file = text.count("-- name: ")
            lines_of_file = len(list(filter(None, text.splitlines()))) - of_file
        else:
            of_file, lines_of_file = tokens_and_code_lines(text)
        tokens += of_file
        lines += lines_of_file
    return tokens / lines


def tokens_and_code_lines(text: str) -> tuple[int, int]:
    """Return how many tokens a module's code has, and on how many lines they stand."""
    docstrings = {one.line: one.column for one in strings(text) if one.is_docstring}
    tokens, line, behind = 0, 1, 0
    lines: set[int] = set()
    for found in TOKEN.finditer(text):
        start, end = found.span()
        line += text.count("\n", behind, start)
        behind = start
        column = start - text.rfind("\n", 0, start) - 1 if line in docstrings else None
        if found.lastgroup == "comment" or docstrings.get(line, ...) == column:
            continue
        tokens += 1
        lines.update(range(line, line + 1 + text.count("\n", start, end)))
    return tokens, len(lines)


@cache
def strings(text: str) -> tuple[Said, ...]:
    """Return the strings of a module that stand as statements."""
    return tuple(_strings(ast.parse(text)))


def _strings(node: ast.AST) -> Iterator[Said]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for place, child in enumerate(getattr(node, part, ())):
            match child:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    first = part == "body" and place == 0
                    is_docstring = first and isinstance(node, documented)
                    yield Said(child.lineno, child.col_offset, text, is_docstring)
                case ast.Expr():
                    pass
                case _:
                    yield from _strings(child)


def docstrings_in_dialect(file: Path) -> Iterator[str]:
    """Find the strings of a file that stand as statements and begin with a word of `DIALECT`."""
    for one in strings(file.read_text()):
        if DIALECT.match(one.text.lstrip()):
            yield f"{file}:{one.line}: {one.text.strip().splitlines()[0]}"


def is_riddle(file: Path) -> bool:
    """Return whether the module's docstring matches `RIDDLE`."""
    first = next(iter(strings(file.read_text())), None)
    is_of_module = first is not None and first.is_docstring and first.column == 0
    text = cleandoc(first.text) if first is not None and is_of_module else ""
    return RIDDLE.match(text.split("\n\n")[0]) is not None


def long_prose(file: Path) -> Iterator[str]:
    """Find the lines of docstrings and comments that have more than 100 characters, beside the
    quotes that the formatter puts behind the last. A row of a table has as many as it needs.
    """
    source = file.read_text()
    lines = source.splitlines()
    prose = {
        place
        for one in strings(source)
        for place in range(one.line, one.line + one.text.count("\n") + 1)
    }
    prose |= {place for place, line in enumerate(lines, 1) if line.lstrip().startswith("# ")}
    for place in sorted(prose):
        line = lines[place - 1].removesuffix('"""')
        if len(line) > MOST_CHARACTERS and not line.lstrip().startswith(("|", "# fmt:")):
            yield f"{file}:{place}"


def share_of_long_lines(files: Iterable[Path]) -> float:
    """Return the share of the files' lines that have more than 100 characters."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sum(len(line) > MOST_CHARACTERS for line in lines) / len(lines)


class Function(NamedTuple):
    """A function: its place, its lines with its docstring, and its deepest level of nesting."""

    place: str
    lines: int
    nesting: int


def functions(file: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(f"{file}:{node.lineno} {node.name}", lines, _nesting(node.body))


def _nesting(body: Iterable[ast.AST], level: int = 0) -> int:
    return max((_level(node, level) for node in body), default=level)


def _level(node: ast.AST, level: int) -> int:
    """Return the deepest level of a statement; an `elif` is as deep as its `if`."""
    match node:
        case ast.If(body=body, orelse=[ast.If() as other]):
            return max(_nesting(body, level + 1), _level(other, level))
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            parts = [node.body, node.orelse, node.finalbody, *(one.body for one in handlers)]
        case ast.Match(cases=cases):
            parts = [one.body for one in cases]
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            parts = [node.body, node.orelse]
        case ast.With() | ast.AsyncWith():
            parts = [node.body]
        case _:
            return level
    return max(_nesting(part, level + 1) for part in parts)


def main() -> None:
    files = sorted(SRC.rglob("*.py"))
    print(f"tokens a code line: {tokens_a_code_line(files):.2f}")
    print(f"lines over {MOST_CHARACTERS} characters: {share_of_long_lines(files):.2%}")
    found = sorted((one for file in files for one in functions(file)), key=lambda one: one.lines)
    print(f"lines of a function: p99 {found[-len(found) // 100].lines}, most {found[-1].lines}")


if __name__ == "__main__":
    main()
