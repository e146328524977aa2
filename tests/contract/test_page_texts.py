"""`cardsync texts`: one person can read every sentence that a page can show."""

from __future__ import annotations

import re

import pytest

from cardsync.dashboard import messages, page_texts


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
