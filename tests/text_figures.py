"""Measures how dense the text of src is, in two figures: `python tests/text_figures.py` prints
them.

Tokens a code line: what Python's tokenizer finds, divided by the lines that hold any of it.
Docstrings, comments and blank lines are left out. Long lines: the share of all lines that have more
than 100 characters.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

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
# These tokens only say where a line, a block or the file begins and ends.
LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def tokens_a_code_line(files: Iterable[Path]) -> float:
    """Count the tokens of the files' code, and divide them by the lines that hold them."""
    tokens = lines = 0
    for file in files:
        of_file, lines_of_file = tokens_and_code_lines(file.read_text())
        tokens += of_file
        lines += lines_of_file
    return tokens / lines


def tokens_and_code_lines(text: str) -> tuple[int, int]:
    """Return how many tokens a module's code has, and on how many lines they stand."""
    docstrings = set(docstring_starts(ast.parse(text)))
    tokens = 0
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT or token.start in docstrings:
            continue
        tokens += 1
        lines.update(range(token.start[0], token.end[0] + 1))
    return tokens, len(lines)


def docstring_starts(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Find the docstrings of a module, its classes and its functions, each by line and column."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            yield first.lineno, first.col_offset


def docstrings_in_dialect(file: Path) -> Iterator[str]:
    """Find the strings of a file that stand as statements and begin with a word of `DIALECT`."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if DIALECT.match(text.lstrip()):
                yield f"{file}:{node.lineno}: {text.strip().splitlines()[0]}"


def is_riddle(file: Path) -> bool:
    """Return whether the module's docstring matches `RIDDLE`."""
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return RIDDLE.match(text.split("\n\n")[0]) is not None


def share_of_long_lines(files: Iterable[Path]) -> float:
    """Return the share of the files' lines that have more than 100 characters."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sum(len(line) > MOST_CHARACTERS for line in lines) / len(lines)


def main() -> None:
    files = sorted(SRC.rglob("*.py"))
    print(f"tokens a code line: {tokens_a_code_line(files):.2f}")
    print(f"lines over {MOST_CHARACTERS} characters: {share_of_long_lines(files):.2%}")


if __name__ == "__main__":
    main()
