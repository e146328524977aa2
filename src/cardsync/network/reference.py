"""Parses references to cards, which buyers and assistants write, into comparable parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

from cardsync.catalog.collector_number import CollectorNumber, read_collector_number
from cardsync.catalog.one_name import folded, name_parts
from cardsync.catalog.printings import MeantPrintings, printings_meant
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.network.limits import REFERENCE_NAME, REFERENCES
from cardsync.platform import errors
from cardsync.platform.read_json import read
from cardsync.platform.value_types import JsonObject

GAME: Final = "pokemon"
FIELDS: Final = ("name", "set", "number", "finish")
Part = Annotated[str, msgspec.Meta(max_length=300)]
_Cards = Annotated[list[JsonObject], msgspec.Meta(min_length=1)]
# The minimum length of the words that the index of names is searched for.
_LONG_WORD = 4
# A name with a number after it, as in "Snivy - 001/086". The number counts if the field `number` of
# the reference is empty.
_BEHIND = re.compile(
    r"^(?P<name>.*\S)\s+-\s+#?(?P<number>[A-Za-z]{0,5}[0-9][A-Za-z0-9]*(?:/\S+)?)\s*$"
)
# A name of two faces, such as "Front // Back", "Front/Back", "Front / Back" or "Front | Back". A
# part in parentheses may follow.
_FACES = re.compile(
    r"^(?P<front>[^/|(（]*[^/|(（\s])\s*(?://?|\|)\s*[^\s(（][^(（]*(?P<rest>[(（].*)?$"
)


class CardReference(NamedTuple):
    """One reference in comparable form; missing parts are empty or None.

    `words` are the words of the name, `full` is the whole name. `sets`, `code` and `finish` are
    folded. `finishes` are the marketplace's printings that the finish names, and the printings that
    it may mean.
    """

    query: JsonObject
    words: tuple[str, ...]
    full: str
    sets: str
    code: str
    number: str
    total: str | None
    finish: str
    finishes: MeantPrintings
    # If the name is mistyped: for each word of `words`, the similar words that may be meant.
    meant: tuple[tuple[str, ...], ...] = ()
    # If the name has two faces: the same reference with only the name of the front.
    front: CardReference | None = None

    def query_text(self) -> str:
        """Return the name as a tsquery of PostgreSQL, in which each word matches as a prefix."""
        # A name of only punctuation has no words. Its query is a word that no name has.
        return " & ".join(self._groups()) or _quoted("\\")

    def probe_text(self) -> str:
        """Return the tsquery for the index of names, without short words, which are prefixes of
        words in thousands of names. `query_text` then filters the names that the index finds.
        """
        groups = self._groups()
        long = [at for at, word in enumerate(self.words) if len(word) >= _LONG_WORD]
        longest = sorted(range(len(groups)), key=lambda at: -len(self.words[at]))[:1]
        return " & ".join(groups[at] for at in long or longest) or _quoted("\\")

    def _groups(self) -> list[str]:
        words = self.meant or ((),) * len(self.words)
        return [
            "(" + " | ".join((f"{_quoted(word)}:*", *map(_quoted, others))) + ")"
            for word, others in zip(self.words, words, strict=True)
        ]

    @property
    def is_free(self) -> bool:
        """Return whether the reference has only a name."""
        return not (self.sets or self.number or self.finish)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


class Reference(msgspec.Struct):
    """A reference to a card."""

    name: Part
    """The card's name, at least 2 characters"""
    set: Part | None = None
    number: Part | None = None
    finish: Part | None = None


R = TypeVar("R", bound=Reference)


class OneReference(Reference, kw_only=True):
    """One reference, with its game."""

    game: str = GAME


class SeveralReferences(msgspec.Struct):
    """Up to 25 references to cards of one game."""

    cards: Annotated[list[Reference], msgspec.Meta(min_length=1, max_length=REFERENCES)]
    """At most 25 references"""
    game: str = GAME


def references(
    body: object,
    shape: type[R],
    most: int = REFERENCES,
) -> tuple[str, list[tuple[dict[str, object], R]]]:
    """Return the game and the references of a request's body, each in the sent and in the parsed
    form.

    Raises InvalidPayload, NameTooShort, TooManyReferences.
    """
    given = read(body, JsonObject)
    game = read(given.get("game", GAME), str, "game")
    cards = given.get("cards")
    if (cards is None) == (given.get("name") is None):
        raise errors.InvalidPayload("send either one reference, with its name, or a list of cards")
    if cards is None:
        sent: list[dict[str, object]] = [{name: given[name] for name in FIELDS if name in given}]
        found = [read(sent[0], shape)]
    else:
        sent = read(cards, _Cards, "cards")
        if len(sent) > most:
            raise errors.TooManyReferences(
                f"a request can have at most {most} references, not {len(sent)}"
            )
        found = [read(card, shape, f"cards[{at}]") for at, card in enumerate(sent)]
    for at, one in enumerate(found):
        if len(one.name.strip()) < REFERENCE_NAME:
            raise errors.NameTooShort(
                f"{'' if cards is None else f'cards[{at}].'}name: must have at least"
                f" {REFERENCE_NAME} characters"
            )
    plain = game.strip().lower()
    return NAME_BY_LABEL.get(plain, plain), list(zip(sent, found, strict=True))


def comparable(cards: Iterable[tuple[dict[str, object], Reference]]) -> list[CardReference]:
    """Return the references in comparable form, in their order."""
    return [_comparable(sent, card) for sent, card in cards]


def _comparable(sent: dict[str, object], card: Reference) -> CardReference:
    name, written = _apart(card)
    number = read_collector_number(written)
    given_set, finish = card.set or "", folded(card.finish or "")
    whole = CardReference(
        sent,
        *_named(name, number),
        folded(given_set),
        given_set.strip().lower(),
        number.key,
        number.total,
        finish,
        printings_meant(finish),
    )
    faces = _FACES.match(name)
    if faces is None:
        return whole
    words, front = _named(" ".join(filter(None, faces.groups())), number)
    return whole._replace(front=whole._replace(words=words, full=front))


def _named(name: str, number: CollectorNumber) -> tuple[tuple[str, ...], str]:
    full = name_parts(name, number).full()
    return tuple(dict.fromkeys(full.split())), full


def _apart(card: Reference) -> tuple[str, str]:
    """Return a reference's name and number; the number may follow the name."""
    name, number = card.name, card.number or ""
    if not number.strip() and (found := _BEHIND.match(name)):
        return found["name"], found["number"]
    return name, number
