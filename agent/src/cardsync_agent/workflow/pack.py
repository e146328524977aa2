"""The format of a workflow pack, which describes one marketplace in one language. Pure.

A pack names pages, elements and steps; it contains no program. The steps use only the verbs of this
module, and only on the origins that the pack lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Origin = Annotated[str, msgspec.Meta(pattern=r"^https?://[a-z0-9.\[\]:-]{1,253}$")]
# A path with two slashes at its beginning would be the address of another host.
Path = Annotated[str, msgspec.Meta(pattern=r"^/(?!/)[^\s\\]*$", max_length=1_000)]
FORMAT: Final = 1
MOST_BYTES: Final = 500_000
# The largest value of the server's column; a date with two more digits (2026112801) is smaller.
MOST_VERSION: Final = 2_147_483_647
Version = Annotated[int, msgspec.Meta(ge=1, le=MOST_VERSION)]
_DAYS = ("date_from", "date_to")
# The workflows that the adapter uses, each with the file that it must produce and the values that
# it may take; a pack may omit workflows. An import of prices is staged and verified, then published
# or discarded. A pack with `quick_add` adds new stock by the marketplace's form, a pack without
# `quick_add` by the import. An `export_inventory` with the value `product_line` runs once per
# product line.
WORKFLOWS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "export_inventory": ("inventory", ("product_line",)),
    "stage_prices": ("import_report", ("rows_sent",)),
    "publish_prices": ("", ("rows_sent",)),
    "discard_prices": ("", ("rows_sent",)),
    "order_list": ("order_list", _DAYS),
    "pull_sheet": ("pull_sheet", _DAYS),
    "shipping": ("shipping", _DAYS),
    "refunds": ("refunds", _DAYS),
    "feedback": ("feedback", _DAYS),
    "sales_report": ("sales_report", ("month", *_DAYS)),
    "account": ("account", ()),
    "quick_add": ("", ("card_id", "condition", "quantity", "price")),
    "read_prices": ("card_prices", ("ids",)),
}


class Locator(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One way to find an element: exactly one field is set, except that `name` may be set with
    `role`.
    """

    role: Text | None = None
    name: Text | None = None
    label: Text | None = None
    test_id: Text | None = None
    text: Text | None = None
    css: Text | None = None


class Looks(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The element's appearance when it was recorded."""

    tag: str = ""
    role: str = ""
    text: str = ""
    label: str = ""
    id: str = ""
    name: str = ""
    type: str = ""
    href: str = ""
    title: str = ""
    classes: tuple[str, ...] = ()
    around: str = ""


class Element(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Locators are tried in order. `recorded` is False for an element that a person must first
    record at the real site.
    """

    locators: Annotated[tuple[Locator, ...], msgspec.Meta(max_length=10)] = ()
    looks: Looks = Looks()
    recorded: bool = True


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The post-condition of a step: each field that is set must be satisfied. A repair never
    changes a condition.

    `url` is a path with `*` for any text. `visible` and `gone` name elements. `file` names a file
    that the step downloaded, with `header` among its columns. `figure` names an element whose
    number must equal the named value `equals`.
    """

    url: Text | None = None
    visible: Name | None = None
    gone: Name | None = None
    file: Name | None = None
    header: tuple[Text, ...] = ()
    figure: Name | None = None
    equals: Name | None = None
    within: Annotated[int, msgspec.Meta(ge=1, le=600)] = 30


class _Step(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="verb",
    tag=str.lower, kw_only=True,
):  # fmt: skip
    """`changes` means that the step imports, publishes or deletes something, so a person must
    confirm each repair of the step. `optional` means that the step is skipped if its element is
    missing.
    """

    name: Name
    then: Condition
    changes: bool = False
    optional: bool = False


class Goto(_Step, frozen=True):
    """Opens a path of the pack's first origin. `{value}` in the path is a named value."""

    path: Path


class Expect(_Step, frozen=True):
    """Waits until `then` holds."""


class Click(_Step, frozen=True):
    element: Name


class Fill(_Step, frozen=True):
    """Fills in a named value, and checks that the field has it; the agent refuses a password field
    when the step runs.
    """

    element: Name
    value: Name


class Choose(_Step, frozen=True):
    """Chooses the option with this label or value, or the option in a named value."""

    element: Name
    option: Text | None = None
    value: Name | None = None


class Upload(_Step, frozen=True):
    """Passes a named file to a file input."""

    element: Name
    file: Name


class Download(_Step, frozen=True):
    """Clicks the element and stores the downloaded file under a name."""

    element: Name
    file: Name


class Wait(_Step, frozen=True):
    seconds: Annotated[int, msgspec.Meta(ge=1, le=120)]


class Screenshot(_Step, frozen=True):
    """Takes a masked picture for the cycle's log."""


class Human(_Step, frozen=True):
    """Asks the person for something, and continues when `then` holds."""

    message: Text


Step = Goto | Expect | Click | Fill | Choose | Upload | Download | Wait | Screenshot | Human


class Workflow(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`repeat` names the element that opens the next page. While the page has this element, the
    agent presses it and repeats the steps other than `goto`.
    """

    steps: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1, max_length=60)]
    repeat: Name | None = None


TurnKind = Literal["sign_in", "second_factor", "captcha"]


class YourTurn(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A page that needs the person. The agent recognizes it by a visible element of `any_of` or by
    its path, which matches `url`.
    """

    kind: TurnKind
    any_of: tuple[Name, ...] = ()
    url: Text | None = None


class FileForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The differences between the marketplace's file and the file that the service reads. `columns`
    maps the marketplace's column names to ours. `most_rows` is the marketplace's limit per file.
    """

    columns: dict[Text, Text] = {}
    most_rows: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Pack(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`masked` names elements with personal data, which are covered in every picture.
    `product_lines` are the marketplace's names. On `sign_in_origins` the agent only waits for the
    person.
    """

    format: Literal[1]
    marketplace: Name
    locale: Annotated[str, msgspec.Meta(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")]
    version: Version
    origins: Annotated[tuple[Origin, ...], msgspec.Meta(min_length=1, max_length=10)]
    elements: dict[Name, Element]
    workflows: dict[Name, Workflow]
    your_turn: tuple[YourTurn, ...] = ()
    masked: tuple[Name, ...] = ()
    files: dict[Name, FileForm] = {}
    product_lines: tuple[Text, ...] = ()
    home: Path = "/"
    sign_in_origins: Annotated[tuple[Origin, ...], msgspec.Meta(max_length=10)] = ()


class BadPack(Exception):
    """The pack cannot be used; the message names the place and the reason."""


def read(content: bytes) -> Pack:
    """Parse a pack. Raises BadPack, also if a step names an element that the pack lacks."""
    if len(content) > MOST_BYTES:
        raise BadPack(f"the pack has more than {MOST_BYTES:,} bytes")
    try:
        pack = msgspec.json.decode(content, type=Pack)
    except (msgspec.ValidationError, msgspec.DecodeError) as problem:
        raise BadPack(f"the pack cannot be read: {problem}") from None
    _check(pack)
    return pack


def unrecorded(pack: Pack, workflow: str) -> list[str]:
    """Return the elements of a workflow that a person must record first."""
    named: set[str] = set()
    for step in pack.workflows[workflow].steps:
        then = step.then
        named |= {getattr(step, "element", None) or "", then.visible or "", then.figure or ""}
        named |= {then.gone or "", pack.workflows[workflow].repeat or ""}
    return sorted(name for name in named - {""} if not pack.elements[name].recorded)


def values_of(workflow: Workflow) -> set[str]:
    """Return the names of the values that a workflow takes."""
    named: set[str] = set()
    for step in workflow.steps:
        named |= {step.then.equals or "", getattr(step, "value", None) or ""}
        if isinstance(step, Goto):
            named |= set(re.findall(r"\{([a-z][a-z0-9_]*)\}", step.path))
    return named - {""}


def misnamed(pack: Pack) -> Iterator[str]:
    """Yield the values and files that this adapter does not have: a step that uses them would fail.
    Such a pack is still valid, because another agent may have these values and files.
    """
    staged = pack.workflows.get("stage_prices")
    places = {step.name for step in staged.steps} if staged else set[str]()
    for title, workflow in pack.workflows.items():
        file, values = WORKFLOWS[title]
        given = {*values, *(places if title in ("publish_prices", "discard_prices") else ())}
        for name in sorted(values_of(workflow) - given):
            yield f"workflows.{title}: there is no value {name}"
        brought = [step.file for step in workflow.steps if isinstance(step, Download)]
        if file and file not in brought:
            yield f"workflows.{title}: does not download {file}"
        for step in workflow.steps:
            if isinstance(step, Upload) and (title, step.file) != ("stage_prices", "prices"):
                yield f"workflows.{title}.{step.name}: there is no file {step.file}"


def _unsafe(workflows: Mapping[str, Workflow]) -> Iterator[str]:
    """Yield the checks that an import lacks. The marketplace's count of accepted rows must be
    compared before and during publication, and clicks that publish, add or discard must be marked
    with `changes`.
    """
    for name in ("stage_prices", "publish_prices", "discard_prices", "quick_add"):
        steps = workflows[name].steps if name in workflows else ()
        if not steps:
            continue
        if not any(isinstance(step, Click) and step.changes for step in steps):
            yield f"workflows.{name}: no click is marked as one that changes something"
        counts = any(step.then.equals == "rows_sent" for step in steps)
        if name in ("stage_prices", "publish_prices") and not counts:
            yield f"workflows.{name}: no figure is compared with rows_sent"
        if name == "stage_prices" and not any(
            isinstance(step, Download) and step.file == "import_report" for step in steps
        ):
            yield "workflows.stage_prices: does not download import_report"


def _check(pack: Pack) -> None:
    for name in pack.workflows:
        if name not in WORKFLOWS:
            raise BadPack(
                f"workflows.{name}: is not a workflow; known workflows are {', '.join(WORKFLOWS)}"
            )
    named = [(f"masked.{name}", name) for name in pack.masked]
    for turn in pack.your_turn:
        named += [(f"your_turn.{turn.kind}", name) for name in turn.any_of]
    for title, workflow in pack.workflows.items():
        if workflow.repeat:
            named.append((f"workflows.{title}.repeat", workflow.repeat))
        for step in workflow.steps:
            place = f"workflows.{title}.{step.name}"
            then = step.then
            uses = (getattr(step, "element", None), then.visible, then.gone, then.figure)
            named += [(place, name) for name in uses if name]
            if then == Condition(within=then.within) and not isinstance(step, Wait | Screenshot):
                raise BadPack(f"{place}: has no post-condition")
            if (then.figure is None) != (then.equals is None):
                raise BadPack(f"{place}: figure and equals must be used together")
    for problem in _unsafe(pack.workflows):
        raise BadPack(problem)
    for title, workflow in pack.workflows.items():
        if "product_line" in values_of(workflow) and not pack.product_lines:
            raise BadPack(f"workflows.{title}: the pack has no product_lines")
    for place, name in named:
        if name not in pack.elements:
            raise BadPack(f"{place}: there is no element {name}")
    for name, element in pack.elements.items():
        if element.recorded and not element.locators:
            raise BadPack(f"elements.{name}: has no locator")
        for locator in element.locators:
            ways = (locator.role, locator.label, locator.test_id, locator.text, locator.css)
            if sum(way is not None for way in ways) != 1 or (locator.name and not locator.role):
                raise BadPack(
                    f"elements.{name}: a locator must use one method, and a name is allowed only with a role"
                )
            if locator.css and ">>" in locator.css:  # >> may select in a frame of another site
                raise BadPack(f"elements.{name}: a CSS locator has no >>")
