"""Parses the words in which apps write conditions, finishes, languages and games. Pure.

An unknown word raises UnknownWord: its row waits with the word, and nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from cardsync.catalog.condition import LANGUAGES, SEALED, read_condition
from cardsync.catalog.printings import PRINTINGS, is_foil, printings_of
from cardsync.catalog.product_lines import LINES

Ladder = Literal["american", "european", "deckbox", "cardtrader"]
SHOWN: Final = 60
Words = Mapping[str, Sequence[str]]


class UnknownWord(Exception):
    """The message is the reason for people."""


class Condition(NamedTuple):
    """The code, and the other parts of a marketplace's whole label; empty where it has none."""

    code: str
    finish: str = ""
    language: str = ""


def squeezed(text: str) -> str:
    """Return a word's letters and digits of any script, its stars and its symbols."""
    plain = unicodedata.normalize("NFKD", text).lower()
    return "".join(
        sign
        for sign in plain
        if sign.isalnum() or sign == "*" or unicodedata.category(sign) == "So"
    )


def _table(words: Mapping[Any, Sequence[str]]) -> dict[str, str]:
    return {squeezed(word): ours for ours, written in words.items() for word in written}


# The grades of each ladder, best first: a worse word never has a better code.
LADDERS: Final[Mapping[Ladder, Words]] = {
    # The words as shops in the United States use them.
    "american": {
        "NM": ("", "m", "mint", "nm", "near mint", "nm/m", "nm-mt", "nm-m"),
        "LP": (
            "ex", "excellent", "lp", "sp", "lightly played", "light played", "light play",
            "slightly played", "slighty played", "good (lightly played)", "very good", "vg",
        ),
        "MP": ("good", "gd", "mp", "moderately played", "moderate played", "moderate play",
               "medium played"),
        "HP": ("played", "pl", "hp", "heavily played", "heavy played", "heavy play"),
        "DMG": ("poor", "po", "damaged", "dmg", "dm", "d"),
    },
    # Cardmarket's words, which ManaBox and Dragon Shield also use.
    "european": {
        "NM": ("", "mt", "m", "mint", "nm", "near mint"),
        "LP": ("ex", "exc", "excellent", "sp", "slightly played"),
        "MP": ("gd", "good", "lp", "light played", "lightly played", "mp", "moderately played"),
        "HP": ("pl", "played", "hp", "heavily played"),
        "DMG": ("po", "poor", "damaged", "dmg"),
    },
    "deckbox": {
        "NM": ("", "m", "mint", "nm", "near mint"),
        "LP": ("lp", "good (lightly played)", "lightly played"),
        "MP": ("mp", "played", "moderately played"),
        "HP": ("hp", "heavily played"),
        "DMG": ("d", "dm", "damaged", "poor"),
    },
    "cardtrader": {
        "NM": ("", "mint", "near mint"),
        "LP": ("slightly played",),
        "MP": ("moderately played",),
        "HP": ("played", "heavily played"),
        "DMG": ("poor", "damaged"),
    },
}  # fmt: skip
_LADDERS: Final = {name: _table(ladder) for name, ladder in LADDERS.items()}
# Words that occur in only one ladder, and identify it if no format does.
_EUROPEAN: Final = frozenset(map(squeezed, ("mt", "ex", "exc", "excellent", "gd", "good", "po")))
_AMERICAN: Final = frozenset(
    map(squeezed, ("mp", "moderately played", "moderate play", "medium played", "dmg", "damaged"))
)
# The finish of a card without the foil flag, for apps that have no other word for a finish. In
# games without that flag, or where it means something else (reverse), it is the finish of a card
# without plain copies.
NOT_FOIL: Final = "Nonfoil"
_FLAGGED: Final = ("magic", "flesh_and_blood", "lorcana", "star_wars_unlimited")
_NORMAL: Final = (
    "normal",
    "no",
    "false",
    "0",
    "n",
    "nonfoil",
    "regular",
    "no foil",
    "standard",
    "none",
    "nein",
    "non",
    "-",
)
_FOIL: Final = (
    "foil", "yes", "true", "1", "y", "x", "f", "etched", "foil etched", "etched foil", "foil_etched",
    "*f*", "*e*", "glossy", "premium", "ja", "oui", "si", "foils",
)  # fmt: skip
_FOIL_AND_MORE: Final = re.compile(r"foil\s*[(\[,;:/-]", re.IGNORECASE)
_FINISHES: Final = _table(
    {name: (name,) for name in PRINTINGS}
    | {"": ("",), "Normal": _NORMAL, "Foil": _FOIL}
    | {
        "Holofoil": ("holo", "holofoil", "holo foil"),
        "Reverse Holofoil": ("reverse holo", "reverse", "reverse foil", "reverse holofoil"),
    }
)
_SIMPLIFIED: Final = (
    "Simplified Chinese", "Chinese Simplified", "S-Chinese", "Chinese (S)", "Chinese", "zh", "zhs",
    "zh_CN", "zh-Hans", "cn", "cs", "sc", "中文", "简体中文", "chinesisch", "chinois", "chino", "cinese",
)  # fmt: skip
_TRADITIONAL: Final = (
    "Traditional Chinese", "Chinese Traditional", "T-Chinese", "Chinese (T)", "zht", "zh_TW",
    "zh_HK", "zh_MO", "zh-Hant", "tw", "ct", "tc", "繁體中文",
)  # fmt: skip
_LANGUAGES: Final = _table(
    {name: (name, code) for name, code in LANGUAGES.items() if "Chinese" not in name}
    | {
        "Phyrexian": ("phyrexian", "ph"),
        "Hebrew": ("hebrew", "he"),
        "Latin": ("latin", "la"),
        "Sanskrit": ("sanskrit", "sa"),
        "Ancient Greek": ("ancient greek", "greek", "grc"),
        "Arabic": ("arabic", "ar"),
        "Simplified Chinese": _SIMPLIFIED,
        "Traditional Chinese": _TRADITIONAL,
        "English": ("", "english", "en", "eng", "us", "gb", "englisch", "anglais", "inglés",
                    "inglese", "inglês"),
        "Japanese": ("japanese", "ja", "jp", "jpn", "japan", "日本語", "japanisch", "japonais",
                     "japonés", "giapponese", "japonês"),
        "Korean": ("korean", "ko", "kr", "kor", "한국어", "koreanisch", "coréen", "coreano"),
        "Spanish": ("spanish", "es", "sp", "esp", "español", "spanisch", "espagnol", "spagnolo",
                    "espanhol"),
        "German": ("german", "de", "ge", "ger", "deu", "deutsch", "deutsche", "allemand", "alemán",
                   "tedesco", "alemão"),
        "French": ("french", "fr", "fra", "fre", "français", "französisch", "francés", "francese",
                   "francês"),
        "Italian": ("italian", "it", "ita", "italiano", "italienisch", "italien"),
        "Portuguese": ("portuguese", "pt", "pt-br", "br", "por", "brazilian portuguese",
                       "português", "portugiesisch", "portugais", "portugués", "portoghese"),
        "Russian": ("russian", "ru", "rus", "русский", "russisch", "russe", "ruso", "russo"),
    }
)  # fmt: skip
# "2xGood" repeats the copies.
_COPIES: Final = re.compile(r"^[0-9]+x(?=[a-z])")
_REGION: Final = re.compile(r"(?<=\w)\s*[-_(][^-_(]*$")
_GAMES: Final = _table({line.name: (line.name, line.label) for line in LINES} | {"": ("",)})
_GAMES_TOO: Final = {
    "mtg": "magic",
    "magicthegathering": "magic",
    "fleshandblood": "flesh_and_blood",
    "fleshbloodtcg": "flesh_and_blood",
    "fab": "flesh_and_blood",
    "onepiececardgame": "one_piece",
    "digimoncardgame": "digimon",
    "disneylorcana": "lorcana",
    "starwarsunlimited": "star_wars_unlimited",
    "dragonballsuperfusionworld": "dragon_ball_fusion_world",
    "dragonballfusionworld": "dragon_ball_fusion_world",
    "gundamcardgame": "gundam",
    "riftboundleagueoflegendstcg": "riftbound",
    "pokemonjapanese": "pokemon_japan",
    "pokemontcg": "pokemon",
    "yugiohtcg": "yugioh",
}


def ladder_of(words: Iterable[str]) -> Ladder:
    """Return the ladder to which a column's words belong."""
    written = {squeezed(word) for word in words}
    return "european" if written & _EUROPEAN and not written & _AMERICAN else "american"


def condition_of(word: str, ladder: Ladder, own: Mapping[str, str]) -> Condition:
    """Return the meaning of a word by the app's own words, by its ladder, or as a marketplace's
    label. Return the game of a word. Raises UnknownWord.
    """
    plain = squeezed(word)
    code = own.get(plain) or _LADDERS[ladder].get(_COPIES.sub("", plain))
    if code is not None:
        return Condition(code)
    label = read_condition(word)
    if label.code is None or label.code == SEALED:
        raise UnknownWord(f"{word[:SHOWN]!r} is not a known condition")
    return Condition(label.code, label.printing, label.language)


def finish_of(word: str, own: Mapping[str, str]) -> str:
    """Return the printing that a word names; empty if it names none. A word that ends in "foil", or
    begins with it and has more words, is a foil; a number or the game's own table may specify
    which. Return the game of a word. Raises UnknownWord.
    """
    plain = squeezed(word)
    found = own.get(plain)
    found = _FINISHES.get(plain) if found is None else found
    if found is not None:
        return found
    if plain.endswith("foil") and not plain.endswith("nonfoil"):
        return " ".join(word.split())
    if _FOIL_AND_MORE.match(word.strip()):
        return "Foil"
    raise UnknownWord(f"{word[:SHOWN]!r} is not a known finish")


def printings_of_word(finish: str, game: str) -> list[str]:
    """Return the printings of a game that a finish can be: "Surge Foil" is a foil of Magic, and a
    foil of Lorcana is one of its own kinds. An empty finish is unknown.
    """
    if finish == NOT_FOIL:
        return ["Normal" if game in _FLAGGED else ""]
    own = printings_of(game)
    if finish in own or not is_foil(finish):
        return [finish]
    if "Foil" in own:
        return ["Foil"]
    return [one for one in own if is_foil(one)] if finish == "Foil" else [finish]


def language_of(word: str, own: Mapping[str, str]) -> str:
    """Return the language of a word, which a region may follow: "de-AT", "Spanish (Mexico)". Return
    the game of a word. Raises UnknownWord.
    """
    said = word
    while True:
        plain = squeezed(said)
        if found := own.get(plain) or _LANGUAGES.get(_COPIES.sub("", plain)):
            return found
        shorter = _REGION.sub("", said)
        if shorter == said:
            raise UnknownWord(f"{word[:SHOWN]!r} is not a known language")
        said = shorter


def game_of(word: str) -> str:
    """Return the game of a word. Raises UnknownWord."""
    plain = squeezed(word)
    found = _GAMES.get(plain, _GAMES_TOO.get(plain))
    if found is None:
        raise UnknownWord(f"{word[:SHOWN]!r} is not a known game")
    return found


def own_words(words: Mapping[Any, Sequence[str]]) -> dict[str, str]:
    """Return a format's own words in the form in which they are compared."""
    return _table(words)
