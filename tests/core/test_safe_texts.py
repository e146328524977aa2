"""Texts in files that a person opens: none begins what a spreadsheet calculates, and each can be read
back as it was.
"""

import sys
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.report import write_csv
from cardsync.platform.kit.csv_table import encoded
from cardsync.platform.kit.safe_texts import as_it_was, safe, safe_texts

SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫−"
# Characters that stand before a sign and that nobody sees, or that a program leaves out.
BEFORE = (
    "\t\r\n \u00a0\u200b\u200c\u200d\u2060\ufeff\u00ad\u3000\u034f\ufe0f\x00\x0b\u2028\u202e\u3164"
)

texts = st.tuples(
    st.text(BEFORE + "'", max_size=4), st.sampled_from(["", *SIGNS]), st.text(max_size=6)
).map("".join)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", *BEFORE, " \u200b\n", "'"], ids=ascii)
def test_a_sign_at_the_beginning_is_behind_an_apostrophe(before, sign):
    text = f'{before}{sign}HYPERLINK("https://example.invalid")'
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize("before", "\t\r\n", ids=ascii)
def test_so_is_a_text_that_begins_with_the_end_of_a_line(before):
    assert safe(f"{before}text") == f"'{before}text"


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "Jaguar", " Jaguar", "a=1", "1-2", "'t Hooft", "\u200bJaguar", "¡Hola!", "ピカチュウ",
        "-1", "-12.50", "0.5", -1, -1.5, None, True,
    ],
)  # fmt: skip
def test_everything_else_stays_and_so_does_a_number(value):
    assert safe(value) == value


def test_no_character_that_is_left_out_hides_a_sign():
    """Every character of Unicode before a sign: one that is seen makes it a plain text."""
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        hidden = not character.isprintable() or character.isspace()
        marks = unicodedata.category(character).startswith("M")
        if hidden or marks or unicodedata.normalize("NFKC", character)[:1] in [*"=+-@"]:
            assert safe(f"{character}=1") == f"'{character}=1", hex(number)
        elif unicodedata.category(character)[0] in "LN" and character.isalnum():
            blank = character in "\u115f\u1160\u3164\uffa0"
            assert (safe(f"{character}=1") == f"{character}=1") != blank, hex(number)


@given(texts)
def test_a_text_is_read_back_as_it_was(text):
    assert as_it_was(safe(text)) == text


@given(st.lists(st.none() | texts))
def test_a_column_is_as_its_cells(column):
    frame = pl.DataFrame(
        {"text": column, "other": column}, schema=dict.fromkeys(("text", "other"), pl.String)
    )
    changed = safe_texts(frame, ["text"])
    assert changed["text"].to_list() == [safe(text) for text in column]
    assert changed["other"].to_list() == column


def test_the_reports_of_commands_are_such_files(tmp_path: Path):
    write_csv(tmp_path / "report.csv", ("where", "reason"), iter([("line 1", "=1+1"), ("@x", -1)]))
    assert (tmp_path / "report.csv").read_bytes() == encoded(
        [("where", "reason"), ("line 1", "=1+1"), ("@x", -1)]
    )
    assert b"line 1,'=1+1\r\n'@x,-1" in (tmp_path / "report.csv").read_bytes()
