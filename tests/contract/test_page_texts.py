"""`cardsync texts`: one person can read every sentence that a page can show."""

from __future__ import annotations

import re

import pytest

from cardsync.dashboard import messages, page_texts
from cardsync.platform import errors
from cardsync.web.forms import sentence


@pytest.fixture(scope="module")
def texts() -> list[page_texts.PageText]:
    return page_texts.collect()


def test_each_template_with_words_is_among_them(texts):
    read = {one.file for one in texts}
    for folder in page_texts.TEMPLATES:
        for path in folder.glob("*.html"):
            shown = re.sub(r"{[{%#].*?[}%#]}|<[^>]*>", "", path.read_text(), flags=re.DOTALL)
            name = path.relative_to(page_texts.SOURCE).as_posix()
            assert name in read or not re.search(r"[A-Za-z]{2}", shown), name


def test_sentences_of_forms_and_refusals_are_among_them(texts):
    found = {one.text for one in texts}
    whole = [one for one in messages.MESSAGES.values() if " " in one]
    assert [one for one in whole if one not in found and "Sync requested" not in one] == []
    assert "… belongs to another member; choose another address" in found


def test_a_text_names_its_file_and_line(texts):
    for one in texts:
        path = page_texts.SOURCE / one.file
        assert path.exists()
        assert 1 <= one.line <= path.read_text().count("\n") + 1, one


def test_what_no_page_shows_is_not_among_them(texts):
    for one in texts:
        assert not re.search(r"\bSELECT\b|\bFROM \w+ WHERE\b", one.text), one


@pytest.mark.parametrize(
    ("refusal", "shown"),
    [
        ("percent off: must be 0 to 90", "Percent off must be 0 to 90."),
        ('price: must be an amount like "1.25"', "Enter a price, like 1.25."),
        ("cards[1].price: is needed", "Price is needed."),
        ("rule.query: no filter called “prise”", "No filter called “prise”."),
        ("cards[2].ends_at: is in the past", "The end is in the past."),
        ("adjust_bp: must be a whole number", "Adjust must be a whole number."),
        ("the list already has 12 cards", "The list already has 12 cards."),
        ("this can't be: 12:30", "This can't be: 12:30."),
    ],
)
def test_a_refusal_begins_with_the_thing_and_not_with_a_path(refusal, shown):
    assert sentence(errors.InvalidPayload(refusal)) == shown


def test_no_page_shows_the_path_of_a_field(texts):
    """A path has an index or a dot; the names of fields alone are made words."""
    path = re.compile(r"^[a-z_]+(\[|\.[a-z_]+: )")
    found = {one.text for one in texts if path.match(one.text)}
    assert [one for one in found if path.match(sentence(errors.InvalidPayload(one)))] == []


def test_a_part_that_scrolls_does_not_repeat_the_name_of_the_part_around_it():
    for path in [path for folder in page_texts.TEMPLATES for path in folder.glob("*.html")]:
        source = path.read_text()
        around = re.findall(r'<section[^>]* aria-labelledby="([^"]+)"', source)
        headings = re.findall(r'<h\d[^>]* id="([^"]+)"[^>]*>([^<]+)<', source)
        scrolls = re.findall(r'role="region"\s+aria-label="([^"]+)"', source)
        assert [text for one, text in headings if one in around and text in scrolls] == [], path
