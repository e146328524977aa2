"""Parses the words that apps use for conditions, finishes, languages and games. Pure.

An unknown word raises UnknownWord, so that its row waits for a choice: the meaning of a word is
never guessed.
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
    """A word that no table contains. The message is for members."""


class Condition(NamedTuple):
    """The code of a condition, and the finish and language if the word is a marketplace's whole
    label; otherwise these are empty.
    """

    code: str
    finish: str = ""
    language: str = ""


def squeezed(text: str) -> str:
    """Return the word in lower case, without accents, spaces and punctuation. Stars and symbols
    stay.
    """
    plain = unicodedata.normalize("NFKD", text).lower()
    return "".join(
        sign
        for sign in plain
        if sign.isalnum() or sign == "*" or unicodedata.category(sign) == "So"
    )


def _table(words: Mapping[Any, Sequence[str]]) -> dict[str, str]:
    return {squeezed(word): ours for ours, written in words.items() for word in written}


# A ladder maps words to our grades, best first. Some words have different meanings in different
# ladders: "lightly played" is LP in the United States and MP in Europe.
LADDERS: Final[Mapping[Ladder, Words]] = {
    # The words of shops in the United States.
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
# Words that occur in only one ladder. They identify a column's ladder if the file's format is
# unknown.
_EUROPEAN: Final = frozenset(map(squeezed, ("mt", "ex", "exc", "excellent", "gd", "good", "po")))
_AMERICAN: Final = frozenset(
    map(squeezed, ("mp", "moderately played", "moderate play", "medium played", "dmg", "damaged"))
)
# The finish of a card that an app does not mark as foil, if the app has no other words for
# finishes. In the games in `_FLAGGED` it is Normal. In other games it is unknown, because their
# cards may have no Normal printing.
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
# The copies that some apps repeat before a condition or language, as in "2xGood".
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
    """Return the ladder to which the words of a file's condition column belong."""
    written = {squeezed(word) for word in words}
    return "european" if written & _EUROPEAN and not written & _AMERICAN else "american"


def condition_of(word: str, ladder: Ladder, own: Mapping[str, str]) -> Condition:
    """Return the condition of a word, by the app's own words, else by the ladder, else as a
    marketplace's label. Raises UnknownWord.
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
    """Return the finish that a word names, or an empty text if it names none. Unknown words that
    end in "foil" name their own finish, such as "Surge Foil"; unknown words that begin with "foil"
    name a Foil. Raises UnknownWord.
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
    """Return the printings that a finish can be in a game. In Magic, "Surge Foil" is Foil; in a
    game without that printing, "Foil" can be each of the game's kinds of foil. An empty text means
    that the printing is unknown.
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
    """Return the language of a word. A region after it is ignored, as in "de-AT" or "Spanish
    (Mexico)". Raises UnknownWord.
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
    """Return the meanings of a format's own words, by the form in which words are compared."""
    return _table(words)
