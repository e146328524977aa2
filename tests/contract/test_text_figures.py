"""The text of src stays readable: one thought a line, and lines that fit a screen."""

from text_figures import SRC, share_of_long_lines, tokens_a_code_line, tokens_and_code_lines

FILES = sorted(SRC.rglob("*.py"))


def test_the_code_stays_under_seven_and_a_half_tokens_a_line():
    assert tokens_a_code_line(FILES) < 7.5


def test_less_than_one_line_in_two_hundred_has_over_100_characters():
    assert share_of_long_lines(FILES) < 0.005


def test_docstrings_comments_and_blank_lines_do_not_count():
    text = (
        '"""A module."""\n\n# A comment.\ndef f(a):  # another\n    """Return."""\n    return a\n'
    )
    # def f ( a ) : stands on one line, return a on another.
    assert tokens_and_code_lines(text) == (8, 2)
