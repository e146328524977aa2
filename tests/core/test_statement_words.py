"""Statements in logs and traces: their words, without any value that stands in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.sql import SQL, Literal

from cardsync.platform.database.statement_words import described, summary

QUOTED = st.text(alphabet="secret' ;$\\x-", max_size=30)


@pytest.mark.parametrize(
    ("statement", "words", "name"),
    [
        (
            "SELECT * FROM card WHERE id = %(id)s",
            "SELECT * FROM card WHERE id = %(id)s",
            "SELECT card",
        ),
        ("SELECT 1", "SELECT ?", "SELECT"),
        ("SELECT x2 FROM t WHERE n > 2.50", "SELECT x2 FROM t WHERE n > ?", "SELECT t"),
        ("  UPDATE card\n   SET price = $1", "UPDATE card SET price = $1", "UPDATE card"),
        ("SELECT 'Buyer''s name' FROM orders", "SELECT ? FROM orders", "SELECT orders"),
        ("SELECT 'cut off FROM orders", "SELECT ?", "SELECT"),
        ("INSERT INTO card VALUES (1) -- secret", "INSERT INTO card VALUES (?)", "INSERT card"),
        (
            "BEGIN READ ONLY; SET LOCAL app.seller_id = '7'; EXECUTE poll (7, 3)",
            "EXECUTE poll (?, ?)",
            "EXECUTE poll",
        ),
        ("COPY incoming (id, name) FROM STDIN", "COPY incoming FROM STDIN", "COPY incoming"),
        (
            "COPY (SELECT name FROM card WHERE name = E'it\\'s secret') TO STDOUT",
            "COPY card TO STDOUT",
            "COPY card",
        ),
        (b"SELECT 'secret'", "SELECT ?", "SELECT"),
        (SQL("SELECT {}").format(Literal("secret")), "SELECT ?", "SELECT"),
    ],
)
def test_the_words_of_a_statement(statement, words, name):
    assert described(statement) == words
    assert summary(words) == name


def test_a_long_statement_is_cut_off():
    words = described(f"SELECT {', '.join(f'column_{n}' for n in range(100))} FROM card")
    assert len(words) == 200
    assert words.endswith("…")


@given(QUOTED)
def test_no_text_that_the_driver_quoted_is_left(text):
    quoted = Literal(text).as_string()
    assert "secret" not in described(f"SELECT name FROM card WHERE name = {quoted} AND x = 1")
