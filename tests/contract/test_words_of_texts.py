"""No sentence that a page can show has a word that docs/glossary.md rules out, a British spelling,
or a wrong name of a game.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cardsync.dashboard import page_texts

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
# Data does not stand, lie, come, go or tell; a person says what a thing is not, and not "is no".
# What programs read of the API, and what the operator's terminal shows.
NOT_FOR_SELLERS = (
    "web/field_words.py",
    "platform/derived/",
    "agents/releases/",
    "agents/workflows/",
    "operations/moving/",
    "catalog/market/",
)
RULED_OUT = {
    "a verb that data does not have": r"stands?|stood|goes(?! (live|below|from))|comes|lies|tells|told|shall",
    "somebody is told": r"tell (you|us|the desk|how|why|which|when)",
    "is no": r"(?<!there )(?<!There )(is|are) no (?!longer|more)",
    "page": r"(load|open) this page again|page of (cards|orders|shelves)|of now\b",
    "an old name": r"[Aa]dvices?|[Pp]ricing jobs?|[Rr]epricing|[Tt]ombstones?|nowhere|any more",
    "a British spelling": (
        r"\w*colou?r?ed|[Cc]olours?|[Cc]atalogues?|[Cc]ancell(ed|ing)|[Ll]abell\w+|[Gg]rey|[Ff]avour\w*"
        r"|[Bb]ehaviour|[Ll]icence|[Oo]rganis\w+|[Rr]ecognis\w+|[Cc]entre|[Cc]heque|[Ww]hilst"
    ),
    "another name of a price or a state": r"^(Then|Next price|On the marketplace|[Gg]one)$",
    "the sync app's name": r"(?<!cardsync-)[Aa]gents?('s)?",
    "the marketplace's name": r"[Tt]he marketplace('s)?|your marketplace",
    "leave blank to": r"Empty(:| for| uses| if)|Optional\. Blank|[Ll]eave it empty",
    "turned on or off": r"[Ss]witch(ed)?( it| them)? (on|off)",
    "what is read twice": (
        r"[Mm]end(s|ed)?|anew|meanwhile|in place of|held out|passed over|put off|begin (a|again)"
        r"|at most … \w+ at once: choose|names (a|no) (line|mark|order|way)|how far it is"
    ),
    "a game's name": r"Pokemon|Yugioh|Yu-Gi-Oh(?!!)|flesh_and_blood|Magic the Gathering|MTG",
}


@pytest.fixture(scope="module")
def texts() -> list[page_texts.PageText]:
    return page_texts.collect()


def of_glossary() -> list[str]:
    """The phrases of the glossary's last columns: a single word may mean another thing elsewhere."""
    rows = (line.split("|") for line in GLOSSARY.read_text().splitlines() if line.count("|") == 5)
    cells = (re.sub(r"\(.*?\)", "", cells[4]) for cells in rows)
    phrases = (part.strip() for cell in cells for part in re.split("[,;]", cell))
    return [one for one in phrases if " " in one and not re.match("for |which ", one)]


def having(pattern: str, texts: list[page_texts.PageText]) -> list[str]:
    return [
        f"{one.file}:{one.line} {one.text}"
        for one in texts
        if not one.file.startswith(NOT_FOR_SELLERS) and re.search(rf"\b({pattern})\b", one.text)
    ]


@pytest.mark.parametrize("why", RULED_OUT)
def test_no_text_has_a_word_that_is_ruled_out(texts, why):
    assert having(RULED_OUT[why], texts) == []


def test_no_text_has_another_phrase_than_the_glossary(texts):
    phrases = of_glossary()
    assert "file of prices" in phrases
    assert having("|".join(map(re.escape, phrases)), texts) == []


def test_the_rules_find_what_they_rule_out():
    wrong = [
        "It stands here",
        "This is no card",
        "A Pokemon card",
        "Your colours",
        "told of",
        "gone",
    ]
    for text in wrong:
        one = page_texts.PageText("a.html", 1, text)
        assert any(having(pattern, [one]) for pattern in RULED_OUT.values()), text
