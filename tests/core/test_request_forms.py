"""`x[]=1` is `x=1` in a query, and nothing else of it changes."""

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.web.request_forms import storable, without_brackets

TEXTS = st.text(st.sampled_from("ab[]%5Dd=&+ é"), max_size=6)
NAMES = st.text("ab%é", min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        (b"", b""),
        (b"x[]=1&x[]=2", b"x=1&x=2"),
        (b"x%5B%5D=1&y=2&x%5b%5d=3", b"x=1&y=2&x=3"),
        (b"x[]", b"x"),
        (b"search=a[]&page=2", b"search=a[]&page=2"),
        (b"search=a%5B%5D", b"search=a%5B%5D"),
        (b"a=b[]=c", b"a=b[]=c"),
        (b"[]=1", b"[]=1"),
        (b"x[0]=1&x[a]=2", b"x[0]=1&x[a]=2"),
    ],
)
def test_names_lose_their_brackets(query, read):
    assert without_brackets(query) == read


@given(st.lists(st.tuples(NAMES, st.booleans(), TEXTS), max_size=5), st.booleans())
def test_only_names_change(pairs, quoted):
    """Property: values and their order stay, whatever is in them."""
    plain = [(name, value) for name, _, value in pairs]
    sent = urlencode([(f"{name}[]" if many else name, value) for name, many, value in pairs])
    sent = sent if quoted else sent.replace("%5B%5D=", "[]=")
    read = without_brackets(sent.encode()).decode()
    assert parse_qsl(read, keep_blank_values=True) == plain


@given(st.text(st.sampled_from("\0%0a&="), max_size=9))
def test_a_query_holds_no_nul(words):
    read = parse_qsl(storable(urlencode({"x": words}).encode()).decode(), keep_blank_values=True)
    assert read == [("x", words.replace("\0", "\ufffd"))]
