"""Collects the evidence about the element that a workflow lost: its old selector, its step's name
and its appearance when it was last verified. Pure.

The old selector may be CSS, XPath or a browser driver's own syntax (`text=`, `role=`,
`:has-text()`). The selector is parsed for its texts and never run; unreadable parts are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from cardsync.agents.repairs.label_words import VERSIONS, distinctive, words
from cardsync.agents.repairs.snippet import Page, kind_of
from cardsync.platform.value_types import JsonObject

IDENTIFYING = ("id", "name", "href", "for", "action", "formaction")
SPOKEN = ("aria-label", "title", "placeholder", "alt", "value")
_SEEN_AROUND = 30
_SEEN_CHARACTERS = 200
_QUOTED = r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')"""
_PART = re.compile(
    rf"""
      (?P<text>:(?:has-text|text-is|text|contains|-soup-contains)\(\s*{_QUOTED}\s*\))
    | (?P<attribute>\[\s*@?(?P<attr>[\w:-]+)\s*(?:[~|^$*]?=\s*(?:{_QUOTED}|(?P<bare>[^\]\s]+)))?[^\]]*\])
    | \#(?P<id>(?:[\w-]|\\.)+)
    | \.(?P<class>(?:[\w-]|\\.)+)
    | :[\w-]+(?:\((?:[^()]|\([^()]*\))*\))?
    | (?P<tag>[A-Za-z][\w-]*)
    | (?P<between>\s*[>+~]\s*|\s+)
    """,
    re.VERBOSE,
)
_XPATH_TEXT = re.compile(rf"(?:text\(\)|\.)\s*(?:=|,)\s*{_QUOTED}")
_XPATH_ATTRIBUTE = re.compile(rf"@([\w:-]+)\s*(?:=|,)\s*{_QUOTED}")
_ROLE = re.compile(rf"role=([\w-]+)(?:\[name\s*\*?=\s*{_QUOTED})?")
_ESCAPED = re.compile(r"\\(.)")
_UNSTABLE = re.compile(r"\d{4,}|[0-9a-f]{8,}|:r\w*:|^(?:css|sc|jss|emotion|svelte)-|\d[a-z]+\d")


def _by_word(lines: dict[str, str]) -> dict[str, frozenset[str]]:
    return {word: frozenset(to.split()) for said, to in lines.items() for word in said.split()}


# The possible uses of an element by the last word of its name.
_KINDS_OF_WORDS = _by_word(
    {
        "button btn submit link lnk menuitem": "press",
        "select dropdown combobox": "choose",
        "checkbox chk radio switch": "check",
        "textbox textarea textfield": "write",
        "input field": "write choose check file",
    }
)
# The possible uses of an element by the first word of its step's name.
_KINDS_OF_VERBS = _by_word(
    {
        "fill type enter write": "write",
        "click press tap": "press check",
        "choose pick": "choose check press file",
        "check tick uncheck": "check",
    }
)
_READING = frozenset({"wait", "await", "read", "expect", "see", "until"})
_TAKING = frozenset({"choose", "pick", "select", "attach", "set"})
_VERBS = frozenset(
    {*_KINDS_OF_VERBS, *_READING, "select", "open", "set", "use", "go", "step", "make", "do"}
)
# Elements that only show text, by tag and by role.
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SHOWING = HEADINGS | {
    "p",
    "dd",
    "dt",
    "td",
    "th",
    "output",
    "strong",
    "em",
    "b",
    "small",
    "caption",
    "legend",
    "address",
    "time",
}
_SHOWING_ROLES = frozenset({"heading", "status", "alert", "definition", "figure", "cell", "note"})
# Attributes whose few values the HTML standard defines: they name an element's purpose.
STANDARD = ("autocomplete", "rel")


@dataclass(frozen=True)
class WantedElement:
    """The evidence about a lost element.

    `kinds` are the uses that the element may have (`snippet.kind_of`); None allows any use. `step`
    has the words of the step's name, `around` the words of the element's surroundings; `hints` has
    words that only explain an element's texts. `reads` means that the step waits for or reads the
    element, `only_reads` that it reads the text. `navigates` means that the element was in the
    page's navigation; None is unknown.
    """

    tag: str | None = None
    kinds: frozenset[str] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    label: str = ""
    step: tuple[str, ...] = ()
    around: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()
    reads: bool = False
    only_reads: bool = False
    navigates: bool | None = None

    def only_shows(self) -> bool:
        """Return whether the element was a text and not a control."""
        role = self.attributes.get("role")
        return role in _SHOWING_ROLES if role else self.tag in _SHOWING

    def is_heading(self) -> bool:
        return self.attributes.get("role") == "heading" or self.tag in HEADINGS


def stable(value: str) -> bool:
    """Return whether a person seems to have chosen an id, a class or an address: it will last."""
    return bool(value.strip()) and not _UNSTABLE.search(value)


def identifies(name: str) -> bool:
    """Return whether an attribute of this name distinguishes its element from others."""
    return name in IDENTIFYING or name.startswith("data-")


def wanted(
    selector: str,
    step_name: str,
    seen: dict[str, object] | None = None,
    workflow: str = "",
) -> WantedElement:
    """Collect the evidence; without `seen` it is only the selector and the step's name."""
    found = _from_seen(seen) if seen else _from_selector(selector)
    said = words(step_name)
    verb = said[0] if said else ""
    kinds = found.kinds
    if verb in _TAKING and "file" in said and found.tag in (None, "input") and not seen:
        kinds = frozenset({"file"})
    elif (by_verb := _KINDS_OF_VERBS.get(verb)) and not seen and found.tag in (None, "input"):
        kinds = ((kinds & by_verb) or kinds) if kinds else by_verb
    return replace(
        found,
        kinds=kinds,
        step=_without_verb(distinctive(step_name)),
        hints=found.hints.union(distinctive(workflow), said),
        reads=verb in _READING,
        only_reads=verb == "read",
    )


def _without_verb(said: tuple[str, ...]) -> tuple[str, ...]:
    return said[1:] if len(said) > 1 and said[0] in _VERBS else said


def seen_of(page: Page, at: int) -> dict[str, object]:
    """Describe an element as JSON for the column `seen`, from which `wanted` can find it again."""
    element = page.elements[at]
    attributes = {
        name: value[:_SEEN_CHARACTERS]
        for name, value in element.attributes.items()
        if identifies(name)
        or name in ("type", "role", "class", "accept", *STANDARD)
        or name in SPOKEN
    }
    if element.kind == "write":
        # A person typed the value; the value is not part of the page.
        attributes.pop("value", None)
    labels = page.labels(at)
    return {
        "tag": element.tag,
        "attributes": dict(list(attributes.items())[:20]),
        "label": labels[0] if labels else "",
        "around": sorted(around(page, at))[:_SEEN_AROUND],
        "navigates": page.in_navigation(at),
    }


def around(page: Page, at: int) -> frozenset[str]:
    """Return the words of an element's nearest four ancestors and of its two neighbors."""
    found: set[str] = set()
    element = page.elements[at]
    above = element.parent
    if above >= 0:
        places = [part for part in page.elements[above].inside if isinstance(part, int)]
        place = places.index(at) if len(places) < 200 else 0
        for near in places[max(0, place - 1) : place + 2]:
            if near != at:
                found.update(words(page.label(near)[:40]))
    for _ in range(4):
        if above < 0:
            break
        attributes = page.elements[above].attributes
        for name in ("id", "class", "aria-label", "name", "action"):
            found.update(distinctive(attributes.get(name, "")))
        above = page.elements[above].parent
    return frozenset(found)


def _from_seen(seen: JsonObject) -> WantedElement:
    attributes = dict(seen["attributes"])
    kind = kind_of(seen["tag"], attributes)
    return WantedElement(
        tag=seen["tag"],
        kinds=frozenset({kind}) if kind else None,
        classes=frozenset(attributes.pop("class", "").split()),
        attributes=attributes,
        label=seen["label"],
        around=frozenset(seen["around"]),
        navigates=seen.get("navigates"),
    )


@dataclass
class _Compound:
    tag: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    label: str = ""

    def is_text(self) -> bool:
        """Return whether the compound has only a text, such as the first part of `:has-text("…")
        button`.
        """
        return not (self.tag or self.attributes or self.classes)

    def empty(self) -> bool:
        return not (self.tag or self.attributes or self.classes or self.label)


def _from_selector(selector: str) -> WantedElement:
    selector = selector.strip()
    steps = [part.strip() for part in selector.split(">>") if part.strip()]
    compounds = [compound for step in steps for compound in _compounds(step)]
    if not compounds:
        return WantedElement()
    last = compounds.pop()
    outside: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    for compound in compounds:
        if compound.is_text():
            near |= _words_of(compound)
        else:
            outside |= _words_of(compound)
    return WantedElement(
        tag=last.tag,
        kinds=_kinds(last),
        attributes=last.attributes,
        classes=frozenset(last.classes),
        label=last.label,
        around=outside | near,
        hints=outside,
    )


def _words_of(compound: _Compound) -> frozenset[str]:
    texts = [compound.label, *compound.classes, *compound.attributes.values()]
    return frozenset(word for text in texts for word in distinctive(text))


def _compounds(step: str) -> list[_Compound]:
    if step.startswith(("text=", "'", '"')):
        return [_Compound(label=step.removeprefix("text=").strip(" '\""))]
    if role := _ROLE.match(step):
        return [_Compound(attributes={"role": role[1]}, label=_first(role[2], role[3]))]
    if step.startswith(("//", "xpath=", "(//", "./")):
        return _of_xpath(step.removeprefix("xpath="))
    return _of_css(step.removeprefix("css="))


def _of_xpath(path: str) -> list[_Compound]:
    found = []
    for part in re.split(r"/+", re.sub(r"/(?=[^\[\]]*\])", " ", path)):
        if not (tag := re.match(r"\(*([a-zA-Z][\w-]*|\*)", part)):
            continue
        compound = _Compound(tag=None if tag[1] == "*" else tag[1].lower())
        for name, one, two in _XPATH_ATTRIBUTE.findall(part):
            _put(compound, name.lower(), one or two)
        if text := _XPATH_TEXT.search(re.sub(_XPATH_ATTRIBUTE, "", part)):
            compound.label = _first(text[1], text[2])
        found.append(compound)
    return found


def _of_css(text: str) -> list[_Compound]:
    compounds, at = [_Compound()], 0
    while at < len(text) and text[at] != ",":
        part = _PART.match(text, at)
        if part is None or part.end() == at:
            at += 1
            continue
        at, compound, groups = part.end(), compounds[-1], part.groupdict()
        if groups["between"]:
            compounds.append(_Compound())
        elif groups["text"]:
            compound.label = _first(part[2], part[3])
        elif groups["attribute"]:
            _put(compound, groups["attr"].lower(), _value(part))
        elif groups["id"]:
            compound.attributes["id"] = _ESCAPED.sub(r"\1", groups["id"])
        elif groups["class"]:
            compound.classes.add(_ESCAPED.sub(r"\1", groups["class"]))
        elif groups["tag"]:
            compound.tag = groups["tag"].lower()
    return [compound for compound in compounds if not compound.empty()]


def _value(part: re.Match[str]) -> str:
    return _ESCAPED.sub(r"\1", part["bare"] or _first(part[6], part[7]))


def _put(compound: _Compound, name: str, value: str) -> None:
    if name == "class":
        compound.classes.update(value.split())
    else:
        compound.attributes[name] = value


def _first(*values: str | None) -> str:
    return next((value for value in values if value), "")


def _kinds(compound: _Compound) -> frozenset[str] | None:
    of = compound.attributes
    if compound.tag == "input" and "type" not in of:
        pressed = {"press", "check"} if "value" in of else {"write", "file", "check", "press"}
        return frozenset(pressed)
    if kind := kind_of(compound.tag or "", of):
        return frozenset({kind})
    if compound.tag is not None:
        return None
    for name, value in of.items():
        said = [word for word in words(value) if not word.isdigit()] if identifies(name) else []
        while said and said[-1] in VERSIONS:
            said.pop()
        if said and (kinds := _KINDS_OF_WORDS.get(said[-1])):
            return kinds
    return frozenset({"press", "check"}) if compound.label else None
