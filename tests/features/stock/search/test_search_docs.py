"""Every example of docs/search.md is a search that can be asked, and gives the errors that the page
names.
"""

import re
from pathlib import Path

import pytest

from builders import a_csv, a_row
from cards_builder import a_list, search
from cardsync.platform import limits
from cardsync.stock.limits import SEARCH_DEPTH, SEARCH_TERMS
from cardsync.stock.search.fields import FIELDS, FLAGS, THINGS
from cardsync.stock.search.parser import parse

PAGE = Path(__file__).parents[4] / "docs" / "search.md"
ROWS = re.findall(r"^\| (`.*?) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
ERRORS = [(found[0], found[1]) for found in ROWS if re.search(r"\(at \d+\)$", found[1])]
EXAMPLES = [
    code.replace(r"\|", "|")
    for row in ROWS
    if row not in ERRORS
    for code in re.findall(r"`([^`]+)`", row[0])
]


@pytest.fixture(scope="module")
async def seller(service):
    from builders import SellerBuilder

    seller = await SellerBuilder(service)(lines=["magic", "pokemon", "pokemon_japan"])
    await seller.import_csv(a_csv(a_row(1), a_row(2, name="NieR:Automata")))
    await a_list(seller, "My Binder", slug="binder")
    await service.sql(
        seller.id, "UPDATE pricing_rule SET name = 'Premium' WHERE seller_id = :s", s=seller.id
    )
    return seller


@pytest.mark.night
@pytest.mark.parametrize("text", EXAMPLES)
async def test_an_example_can_be_asked(seller, text):
    assert (await search(seller, text))["query_errors"] == []


@pytest.mark.parametrize(("text", "told"), ERRORS)
async def test_an_error_is_told_as_the_page_says(seller, text, told):
    message, offset = re.fullmatch(r"(.*) \(at (\d+)\)", told).groups()
    assert (await search(seller, text.strip("`")))["query_errors"] == [
        {"message": message, "offset": int(offset)}
    ]


def test_the_page_names_every_field_flag_and_thing():
    text = PAGE.read_text("utf-8")
    fields = {field.name for field in FIELDS.values()}
    missing = [name for name in fields if not re.search(rf"`[^`]*\b{name}[:=<>!]", text)]
    missing += [flag for flag in FLAGS if f"is:{flag}" not in text] + [
        thing for thing in THINGS if f"has:{thing}" not in text
    ]
    assert missing == []


def test_the_page_names_the_limits():
    text = PAGE.read_text("utf-8")
    for number in (limits.SEARCH_CHARACTERS, SEARCH_TERMS, SEARCH_DEPTH):
        assert f"{number:,}" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bolt or shock cond:NM", "bolt or (shock cond:NM)"),
        ("not:foil", "-is:foil"),
        ("v:4th print", "v:1999-2000"),
        ("v:Poké Ball Pattern", 'v:"Poke Ball Pattern"'),
        ("price=5", "price:5"),
        ("s:dmu", "set:dmu"),
    ],
)
def test_what_the_page_calls_the_same_is_the_same(one, other):
    assert parse(one) == parse(other)
