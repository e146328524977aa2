"""The text of src stays readable: one thought a line, and lines that fit a screen."""

import pytest

from text_figures import (
    BENCH,
    MOST_CHARACTERS,
    SRC,
    TESTS,
    docstrings_in_dialect,
    functions,
    is_riddle,
    long_prose,
    share_of_long_lines,
    tokens_a_code_line,
    tokens_and_code_lines,
)

FILES = sorted(SRC.rglob("*.py"))
AGENT = sorted((SRC.parent / "agent" / "src").rglob("*.py"))
TEMPLATES = sorted(SRC.rglob("templates/**/*.html"))
MOST_LINES = 60
MOST_LEVELS = 4
MOST_LINES_OF_A_FILE = 450
LONG_FUNCTIONS = {
    # Its pools and roles are opened one by one, in the order in which they close.
    "open": "platform/database/session.py",
}
LONG_FILES = {
    "platform/settings.py": "being split by district",
    "platform/errors.py": "the refusals that several districts raise, one class each",
    "platform/table_text.py": "the one reader of people's files, which the sync app has, too",
    "sales/orders/schemas.py": "its conversions are on their way out",
    "stock/search/compile.py": "one class: a method for each field of the search language",
    "web/field_words.py": "a table of sentences",
}
BESIDE = [*TESTS.rglob("*.py"), *BENCH.rglob("*.py")]


def test_the_code_has_few_tokens_a_line():
    assert tokens_a_code_line([*FILES, *SRC.rglob("*.sql")]) < 7.63


@pytest.mark.parametrize("files", [FILES, BESIDE], ids=["src", "tests and bench"])
def test_less_than_one_line_in_two_hundred_has_over_100_characters(files):
    assert share_of_long_lines(files) < 0.005


def test_no_function_is_longer_than_a_screen():
    exempt = [(SRC / "cardsync" / file, name) for name, file in LONG_FUNCTIONS.items()]
    assert [
        one
        for file in FILES
        for one in functions(file)
        if one.lines > MOST_LINES and (file, one.place.split()[-1]) not in exempt
    ] == []


def test_no_function_has_over_four_levels():
    assert [one for file in FILES for one in functions(file) if one.nesting > MOST_LEVELS] == []


def test_no_file_is_longer_than_a_chapter():
    long = {
        str(file.relative_to(SRC / "cardsync"))
        for file in (SRC / "cardsync").rglob("*.py")
        if file.read_text().count("\n") > MOST_LINES_OF_A_FILE
    }
    assert long - LONG_FILES.keys() == set()


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_no_line_of_a_template_has_over_100_characters(file):
    lines = enumerate(file.read_text().splitlines(), 1)
    assert [place for place, line in lines if len(line) > MOST_CHARACTERS] == []


def test_no_line_of_a_docstring_or_comment_has_over_100_characters():
    assert [place for file in [*FILES, *AGENT] for place in long_prose(file)] == []


def test_no_docstring_begins_with_a_word_that_hides_its_subject():
    assert [place for file in FILES for place in docstrings_in_dialect(file)] == []


def test_every_module_docstring_says_what_the_module_does():
    assert [str(file) for file in [*FILES, *AGENT] if is_riddle(file)] == []


@pytest.mark.parametrize("text", ["Rows: a file goes in.", "Rows in, a file out.", "How it is."])
def test_a_riddle_is_found(tmp_path, text):
    file = tmp_path / "module.py"
    file.write_text(f'"""{text}"""\n')
    assert is_riddle(file)


def test_a_docstring_in_dialect_is_found_by_its_line(tmp_path):
    file = tmp_path / "module.py"
    file.write_text('"""Sorts rows."""\n\n\ndef f():\n    """Who may go on."""\n')
    assert list(docstrings_in_dialect(file)) == [f"{file}:5: Who may go on."]


def test_docstrings_comments_and_blank_lines_do_not_count():
    text = (
        '"""A module."""\n\n# A comment.\ndef f(a):  # another\n    """Return."""\n    return a\n'
    )
    # def f ( a ) : stands on one line, return a on another.
    assert tokens_and_code_lines(text) == (8, 2)


def test_lines_and_levels_of_a_function_are_counted(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "async def f(a):\n"
        '    """Return."""\n'
        "    if a:\n        pass\n    elif a > 1:\n        pass\n"
        "    else:\n"
        "        for b in a:\n            try:\n                pass\n"
        "            except ValueError:\n                with b:\n                    pass\n"
    )
    [found] = functions(file)
    assert (found.lines, found.nesting) == (13, 4)
