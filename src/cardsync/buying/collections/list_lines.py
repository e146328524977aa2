"""Parses a line of a plain card list. Pure.

Examples of lines are `4 Name (SET) 123 *F*`, `4x Name [SET] (F)`, `SB: 3 Name`, `[SET#123] Name`,
`Name <123> [SET] (F)`, `1x Name (set) 123 [Category] ^Have,#37d67a^`, `4 Name|SET`, `Name (Set
Name) #123` and `Name`. A line without copies is one copy. A set's full name stays in the card's
name; the matching with the catalog separates the two.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FIELDS: Final = (
    "copies",
    "name",
    "set_code",
    "number",
    "finish",
    "condition",
    "language",
    "set_name",
)


class ListLine(NamedTuple):
    """The cells of a line, in its author's spelling. `set_name` keeps its brackets, because it may
    be a set, such as "[Magic 2011]", or a category, such as "[Ramp]"; the catalog decides.
    """

    copies: str = "1"
    name: str = ""
    set_code: str = ""
    number: str = ""
    finish: str = ""
    condition: str = ""
    language: str = ""
    set_name: str = ""


_PARTS: Final = frozenset(
    {
        "deck", "main", "main deck", "mainboard", "maindeck", "sideboard", "side", "commander",
        "commanders", "companion", "maybeboard", "considering", "about", "tokens", "creatures",
        "creature", "lands", "land", "instants", "instant", "sorceries", "sorcery", "artifacts",
        "artifact", "enchantments", "enchantment", "planeswalkers", "planeswalker", "battles",
        "spells", "other", "pokemon", "pokémon", "trainer", "trainers", "energy", "attractions",
        "stickers", "signature spells", "oathbreaker", "wishlist", "collection", "trade", "binder",
        "total cards",
    }
)  # fmt: skip
_HEADING: Final = re.compile(
    r"(?P<name>[^\d()\[\]]+?)\s*(?:[(\[:]?\s*\d+\s*(?:cards?)?[)\]]?)?\s*:?"
)
_NAMED: Final = re.compile(
    r"(?:name\s|(?:about|layout|format|author|date|deck)\s*:).*", re.IGNORECASE
)
_BOARD: Final = re.compile(r"^(?:SB|MB|CMDR|COMMANDER|SIDEBOARD|MAYBE)\s*:\s*", re.IGNORECASE)
_BULLET: Final = re.compile(r"^[-•*]\s+")
_COPIES: Final = re.compile(r"[x×]?\s*(\d{1,6})\s*[x×]?\s+(?=\S)", re.IGNORECASE)
_COPIES_BEHIND: Final = re.compile(r"\s+(?:[x×]\s*(\d{1,4})|(\d{1,4})\s*[x×]|\((\d{1,4})x?\))$",
                                   re.IGNORECASE)  # fmt: skip
_SET: Final = r"(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{2,6}(?:_[A-Za-z0-9]{1,10})?"
_NUMBER: Final = (
    r"(?:[A-Z]{1,5}\d?-)?[A-Za-z]{0,4}\d{1,5}[A-Za-z★☆*†‡φ]{0,3}(?:/[A-Za-z]{0,3}\d{1,4})?"
)
_BEFORE: Final = re.compile(rf"\[({_SET})(?:[#:]({_NUMBER}))?\]\s+")
# The marks that may follow a name. They are parsed from the end of the line.
_TAGS: Final = re.compile(r"\s+\^[^^]*\^$|\s+#!?\s?[A-Za-z][^#]*$|\s+//\s*#.*$")
_CATEGORY: Final = re.compile(r"\s+\[(?P<category>[^\]]*)\]$|\s+`[^`]*`$")
_FINISH: Final = re.compile(
    r"\s+(?:\*(?P<star>[A-Za-z-]{1,12})\*|[(\[](?P<mark>F|foil|etched|foil etched|etched foil|E|"
    r"nonfoil|[A-Za-z ]+ foil)[)\]]|(?P<word>(?:etched |surge |galaxy |rainbow |gilded |textured )?"
    r"foil|etched)|(?<=[\]>]\s)\((?P<behind>FE)\))$",
    re.IGNORECASE,
)  # fmt: skip
# Finishes that are marked by stars, such as *F*. Other marks in stars, such as altered or
# commander, are ignored.
_STARRED: Final = {"f": "foil", "e": "etched", "fe": "etched"}
_CONDITION: Final = re.compile(
    r"\s+(?:[(\[](?P<marked>NM|LP|MP|HP|DMG|EX|SP|NM/M|Near Mint|Lightly Played|Moderately Played|"
    r"Heavily Played|Damaged|Excellent|Poor)[)\]]|(?P<bare>NM|LP|MP|HP|DMG|NM/M|Near Mint|"
    r"Lightly Played|Moderately Played|Heavily Played|Damaged))$"
)
_LANGUAGE: Final = re.compile(
    r"\s+(?:[(\[](?P<marked>EN|DE|FR|IT|ES|PT|JA|JP|KO|KR|RU|ZHS|ZHT|CS|CT|English|German|French|"
    r"Italian|Spanish|Portuguese|Japanese|Korean|Russian)[)\]]|(?P<bare>English|German|French|"
    r"Italian|Spanish|Portuguese|Japanese|Korean|Russian))$"
)
_IN_SET: Final = re.compile(
    rf"(?:\s+[(\[](?P<set>{_SET})[)\]](?:\s+#?(?P<number>{_NUMBER}))?"
    rf"|\s+[(\[](?P<with>{_SET})[\s:#]+(?P<its>{_NUMBER})[)\]]"
    rf"|\|(?P<piped>{_SET})(?:\|\[?\w+\]?)?)$"
)
# The set's code and the number without brackets, as Pokemon TCG Live writes them; PH means parallel
# holo. Codes of more than four letters must contain a digit, such as SWSH7, SV8PT5 and sv3.5.
_LONGER: Final = (
    r"(?:[A-Z]{2,5}\d{1,3}(?:PT\d|\.\d|[A-Z]{1,2})?|[a-z]{2,5}\d{1,3}(?:pt\d|\.\d|[a-z]{1,2})?)"
)
_BARE: Final = re.compile(rf"\s+(?P<set>(?=[A-Z0-9-]*[A-Z])[A-Z0-9]{{2,4}}(?:-[A-Z]{{2,4}})?|{_LONGER})"
                          r"\s+(?P<number>[A-Z]{0,3}\d{1,4}[a-z]?)(?P<parallel>\s+PH)?$")  # fmt: skip
# A number that contains the set's code, as in One Piece, Yu-Gi-Oh and Digimon.
_CODED: Final = re.compile(r"\s+[(\[]?(?P<number>[A-Z]{1,5}\d{0,2}-[A-Z]{0,2}\d{2,3}[a-z]?)[)\]]?$")
_PROXY: Final = re.compile(r"\bprox(?:y|ies|ied)\b", re.IGNORECASE)
_ANGLED: Final = re.compile(r"\s+<(?P<number>[^<>]{1,30})>")
_BEHIND: Final = re.compile(rf"(?:\s+(?:#|[-–]\s+#?)|(?<=[)\]])\s+)(?P<number>{_NUMBER})$")
_MARKED: Final = re.compile(r"\s+\((?P<number>#?\d{1,4}[a-z]?)\)$")
_PRICE: Final = re.compile(r"\s+[-–@]?\s*[$€£]\s?\d[\d.,]*$")


def begins_with_copies(line: str) -> bool:
    """Return whether a line begins with a number of copies."""
    rest = _BOARD.sub("", line.strip(), count=1)
    found = _COPIES.match(rest)
    return bool(found and re.match(r"[^\W\d]|[\[\"+]", rest[found.end() :]))


def is_no_card(line: str) -> bool:
    """Return whether a line is a heading or a comment."""
    if line.startswith(("//", "#", ";", "---", "===", "***")) or _NAMED.fullmatch(line):
        return True
    found = _HEADING.fullmatch(line)
    return found is not None and found["name"].strip(" :").casefold() in _PARTS


def read_line(line: str) -> ListLine | None:
    """Return the card of a line, or None if the line is no card."""
    rest = _BOARD.sub("", line.strip(), count=1)
    rest = _BULLET.sub("", rest, count=1)
    found = dict.fromkeys(FIELDS, "")
    if counted := _COPIES.match(rest):
        found["copies"], rest = counted[1], rest[counted.end() :]
    if before := _BEFORE.match(rest):
        found["set_code"], found["number"] = before[1], before[2] or ""
        rest = rest[before.end() :]
    rest = _from_the_right(rest, found)
    if not found["copies"] and (behind := _COPIES_BEHIND.search(rest)):
        found["copies"] = behind[1] or behind[2] or behind[3]
        rest = _from_the_right(rest[: behind.start()], found)
    if found["set_code"]:
        found["set_name"] = ""
    name = rest.strip(" \t,;-–")
    if not re.search(r"[^\W_]|^_+", name) or len(name) > 200:
        return None
    return ListLine(**found | {"name": name, "copies": found["copies"] or "1"})


def _from_the_right(text: str, found: dict[str, str]) -> str:
    """Parse the marks after the name into `found`, and return the text before them."""
    left = text
    while True:
        cut = _one_cut(left, found)
        if cut is None or not cut.strip():
            return left
        if _PROXY.search(left[len(cut) :]):
            found["finish"] = "proxy"
        left = cut


def _one_cut(text: str, found: dict[str, str]) -> str | None:
    for pattern in (_TAGS, _PRICE):
        if hit := pattern.search(text):
            return text[: hit.start()]
    if not found["finish"] and (hit := _FINISH.search(text)):
        word = (
            hit["mark"]
            or hit["word"]
            or hit["behind"]
            or _STARRED.get(hit["star"].casefold()[:1], "")
        )
        found["finish"] = _STARRED.get(word.casefold(), word)
        return text[: hit.start()]
    for pattern, field in ((_CONDITION, "condition"), (_LANGUAGE, "language")):
        if not found[field] and (hit := pattern.search(text)):
            found[field] = next(filter(None, hit.groups()))
            return text[: hit.start()]
    hit = _IN_SET.search(text) or _BARE.search(text)
    if hit and not found["set_code"] and _is_set(hit, text):
        parts = hit.groupdict("")
        found["set_code"] = parts["set"] or parts.get("with") or parts["piped"]
        number = parts["number"] or parts.get("its", "")
        found["number"] = found["number"] or number.removeprefix("#")
        if parts.get("parallel"):
            found["finish"] = found["finish"] or "Reverse Holofoil"
        return text[: hit.start()]
    if not found["number"] and not found["set_code"] and (hit := _CODED.search(text)):
        found["number"] = hit["number"]
        return text[: hit.start()]
    if hit := _ANGLED.search(text):
        if not found["number"] and any(sign.isdigit() for sign in hit["number"]):
            found["number"] = hit["number"]
        return text[: hit.start()] + text[hit.end() :]
    if not found["number"] and (hit := _BEHIND.search(text)):
        found["number"] = hit["number"]
        return text[: hit.start()]
    # A number in parentheses is the collector number only if a number of copies precedes the name.
    # Otherwise it may be the number of copies.
    if found["copies"] and not found["number"] and (hit := _MARKED.search(text)):
        found["number"] = hit["number"].removeprefix("#")
        return text[: hit.start()]
    if hit := _CATEGORY.search(text):
        category = hit["category"] or ""
        if category.casefold() not in _PARTS and "{" not in category:
            found["set_name"] = found["set_name"] or f"[{category}]"
        return text[: hit.start()]
    return None


def _is_set(hit: re.Match[str], text: str) -> bool:
    """Return whether a hit is a set's code, and not a category, such as "[Ramp]" or brackets after
    a set, nor a set's name, such as "(Magic 2011)".
    """
    parts = hit.groupdict("")
    code = parts["set"] or parts.get("with", "")
    if re.fullmatch("[A-Z][a-z]+", parts.get("with", "")):
        return False
    if not hit[0].lstrip().startswith("["):
        return True
    return code in (code.upper(), code.lower()) and not re.search(
        rf"\s\({_SET}\)", text[: hit.start()]
    )
