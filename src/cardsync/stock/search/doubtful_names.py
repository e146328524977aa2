"""Finds the parts of a search that may be card names although the parser reads them as something
else, such as `Now or Never`, `Wooper -027/092`, `S:P Little Knight`, `Front // Back`. Rewrites the
parts that are card names, so that the parser reads them as names. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from cardsync.platform import limits
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.folding import folded, spellings
from cardsync.stock.search.parser import OR, SPACE, end_of, parse, part_at
from cardsync.stock.search.tree import And, Not, Or, Phrase, Term, Tree, print_query

_LONGEST: Final = 200
_MOST: Final = 24
_PIECES: Final = 8
# A search with more parts, or more unparsable parts, is not checked for names.
_PARTS: Final = 60
_BAD_PARTS: Final = 6
_SHOWN: Final = 20
# The fields that take any text, so that a name such as `S:P` is parsed as a field with a value.
_OF_TEXT: Final = frozenset({"name", "set", "rarity", "printing", "v"})
# The slash between the names of a card's two faces. Between digits, as in `027/092`, it is part of
# a collector number.
_FACES: Final = re.compile(r"(?<=[^\s\d/])\s*//?\s*(?=[^\s\d/])")
# The characters that may follow a card's name in a product's name.
_MORE: Final = (" (", " [", " - ", " //", "//")

Kind = Literal["word", "odd", "bad", "or", "(", ")", "field"]


class _Part(NamedTuple):
    kind: Kind
    start: int
    end: int


class Span(NamedTuple):
    """A part of a search that may be a name. A `bad` part cannot be parsed. An `odd` part is bad,
    or is parsed as something else than plain words. `front` is the name of the front face, if the
    text has the names of two faces.
    """

    start: int
    end: int
    text: str
    bad: bool
    odd: bool
    front: str

    def is_name_of(self, name: str) -> bool:
        """Return whether the name begins with this part. The spaces of an unparsable part do not
        matter, so `Type:Null` is a name of `Type: Null`.
        """
        same = self.bad and _plain(name).replace(" ", "") == _plain(self.text).replace(" ", "")
        return same or _begins(name, self.text)

    def has_front(self, name: str) -> bool:
        """Return whether the name begins with the front face's name and has no second face."""
        return _begins(name, self.front) and "//" not in name

    def as_name(self, names: Sequence[str]) -> str:
        """Return a search for the cards with these names: the part as a phrase if every name
        contains it, else the names themselves.
        """
        ways = spellings(self.text)
        if all(any(way in folded(name) for way in ways) for name in names):
            return print_query(Phrase(self.text))
        return _exactly(names)

    def or_front(self, names: Sequence[str]) -> str:
        """Return a search for the part, or for cards whose names are exactly these names of the
        front face.
        """
        whole = print_query(Phrase(self.text)) if self.odd else self.text
        return f"({whole} or {_exactly(names)})"


def _plain(name: str) -> str:
    return " ".join(spellings(name)[-1].split())


def _begins(name: str, text: str) -> bool:
    whole, begun = _plain(name), _plain(text)
    return whole.startswith(begun) and (
        len(whole) == len(begun) or whole[len(begun) :].startswith(_MORE)
    )


def _exactly(names: Sequence[str]) -> str:
    return print_query(Term("name", "=", tuple(sorted(set(names))[:_SHOWN])))


def readable(text: str) -> Tree | None:
    try:
        return parse(text, canonical=True)
    except QueryError:
        return None


def is_doubtful(tree: Tree, text: str) -> bool:
    """Return whether a part of a parsed search may be a card name that the parser read as something
    else.
    """
    return _may_differ(tree) or ("/" in text and _FACES.search(text) is not None)


def _may_differ(tree: Tree) -> bool:
    match tree:
        case And():
            texts = any(map(_is_of_text, tree.parts)) and any(map(_has_words, tree.parts))
            return texts or any(map(_may_differ, tree.parts))
        case Or():
            return any(map(_has_words, tree.parts))
        case Not():
            return _has_words(tree.part)
    return False


def _is_of_text(tree: Tree) -> bool:
    return isinstance(tree, Term) and tree.field in _OF_TEXT and len(tree.values) == 1


def _has_words(tree: Tree) -> bool:
    match tree:
        case And() | Or():
            return any(map(_has_words, tree.parts))
        case Not():
            return _has_words(tree.part)
    return not isinstance(tree, Term)


def spans(text: str) -> list[Span]:
    """Return the parts of a search that may be names, the longest first."""
    if len(text) > limits.SEARCH_CHARACTERS:
        return []
    parts = _parts(text)
    if len(parts) > _PARTS or sum(part.kind == "bad" for part in parts) > _BAD_PARTS:
        return []
    found: dict[tuple[int, int], Span] = {}
    broken = readable(text) is None
    for stretch in _stretches(parts):
        for group in _groups(stretch):
            span = _span(text, group, broken and group is stretch)
            if span is not None:
                found[span.start, span.end] = span
    ordered = sorted(found.values(), key=lambda span: span.start - span.end)
    return ordered[:_MOST]


def _span(text: str, parts: Sequence[_Part], broken: bool) -> Span | None:
    start, end = parts[0].start, parts[-1].end
    if end - start > _LONGEST or text[start:end] == "-":
        return None
    kinds = {part.kind for part in parts}
    bad = broken or "bad" in kinds
    odd = bad or not kinds.isdisjoint(("odd", "or"))
    faces = _FACES.search(text, start, end)
    if not (odd or faces):
        return None
    front = text[start : faces.start()] if faces else ""
    return Span(start, end, " ".join(text[start:end].split()), bad, odd, front)


def _stretches(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Yield the sequences of adjacent parts that are not fields."""
    stretch: list[_Part] = []
    for part in parts:
        if part.kind != "field":
            stretch.append(part)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _groups(stretch: list[_Part]) -> Iterator[list[_Part]]:
    """Yield the candidates for names in `stretch`: all of it, each group of parts between two
    operators or parentheses, up to `_PIECES` adjacent groups together, and each unparsable part.
    """
    yield stretch
    ends = [-1, *(at for at, part in enumerate(stretch) if part.kind in ("or", "(", ")"))]
    ends.append(len(stretch))
    for place, before in enumerate(ends[:-1]):
        for behind in ends[place + 1 : place + 1 + _PIECES]:
            group = stretch[before + 1 : behind]
            if group and _is_balanced(group):
                yield group
    yield from ([part] for part in stretch if part.kind == "bad")


def _is_balanced(group: list[_Part]) -> bool:
    depth = 0
    for part in group:
        depth += (part.kind == "(") - (part.kind == ")")
        if depth < 0:
            return False
    return depth == 0


def _parts(text: str) -> list[_Part]:
    """Split a search into parts; stop after one part more than `_PARTS`."""
    parts: list[_Part] = []
    at = end_of(SPACE, text, 0)
    while at < len(text) and len(parts) <= _PARTS:
        if text[at] in "()":
            kind: Kind = "(" if text[at] == "(" else ")"
            end = at + 1
        elif OR.match(text, at):
            kind, end = "or", at + 2
        elif text.startswith("-(", at):
            kind, end = "odd", at + 1
        else:
            tree, end = part_at(text, at)
            kind = _kind(tree)
        parts.append(_Part(kind, at, end))
        at = end_of(SPACE, text, end)
    return parts


def _kind(tree: Tree | None) -> Kind:
    if tree is None:
        return "bad"
    if _is_of_text(tree):
        return "odd"
    inner = tree.part if isinstance(tree, Not) else tree
    return "field" if isinstance(inner, Term) else "odd" if isinstance(tree, Not) else "word"


def written(text: str, known: Mapping[Span, str]) -> str:
    """Return the search with the parts in `known` replaced by their texts. If two parts overlap,
    only the longer part is replaced.
    """
    kept: list[Span] = []
    for span in sorted(known, key=lambda span: span.start - span.end):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    for span in sorted(kept, reverse=True):
        text = text[: span.start] + known[span] + text[span.end :]
    return text
