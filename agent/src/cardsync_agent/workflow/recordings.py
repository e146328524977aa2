"""Adds a person's recording to a pack, and completes a newer pack with the recording. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from cardsync_agent.browser.origins import place_in
from cardsync_agent.workflow import pack


@dataclass
class Recorded:
    """The parts that a person confirmed: elements, the steps of a workflow, the names of elements
    with personal data, and a page or another site that needs the person.
    """

    elements: dict[str, pack.Element] = field(default_factory=dict)
    steps: list[pack.Step] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)
    turn: pack.YourTurn | None = None
    sign_in_origins: list[str] = field(default_factory=list)


class OtherMarketplace(Exception):
    """The pack is for another marketplace; the message names it."""


def added(
    before: pack.Pack | None, marketplace: str, origin: str, workflow: str | None, new: Recorded
) -> pack.Pack:
    """Add a recording to a pack; without a workflow only masks and the person's turn. Raises
    BadPack and OtherMarketplace.
    """
    if before is None:
        before = pack.Pack(
            format=1, marketplace=marketplace, locale="en-US", version=0, origins=(origin,),
            elements={}, workflows={},
        )  # fmt: skip
    if before.marketplace != marketplace or origin not in before.origins:
        raise OtherMarketplace(
            f"the pack is for {before.marketplace} at {before.origins[0]}, and not for"
            f" {marketplace} at {origin}"
        )
    elements, names = _merged(before.elements, new.elements)
    workflows = dict(before.workflows)
    if workflow is not None:
        steps = tuple(_placed(_renamed(step, names), workflow, before) for step in new.steps)
        workflows[workflow] = pack.Workflow(steps)
    turns = before.your_turn
    if new.turn is not None:
        any_of = tuple(names.get(name, name) for name in new.turn.any_of)
        turn = msgspec.structs.replace(new.turn, any_of=any_of)
        turns = (*(one for one in turns if one.kind != turn.kind), turn)
    masked = [names.get(name, name) for name in new.masked]
    made = msgspec.structs.replace(
        before,
        version=before.version + 1,
        elements=elements,
        workflows=workflows,
        your_turn=turns,
        masked=_both(before.masked, masked),
        sign_in_origins=_both(before.sign_in_origins, new.sign_in_origins),
    )
    return pack.read(msgspec.json.encode(made))


def carried(newer: pack.Pack, recorded: pack.Pack) -> list[str]:
    """Return the recorded workflows that a newer pack lacks, or for which a newer pack needs a
    recording.
    """
    return [
        name
        for name in recorded.workflows
        if not pack.unrecorded(recorded, name)
        and (name not in newer.workflows or pack.unrecorded(newer, name))
    ]


def completed(newer: pack.Pack, recorded: pack.Pack) -> pack.Pack:
    """Add from a recording what a newer pack lacks: workflows, the pages that need the person, and
    masks.
    """
    if recorded.version > newer.version:
        return newer
    elements, names = _merged(newer.elements, recorded.elements)
    workflows = dict(newer.workflows)
    for name in carried(newer, recorded):
        workflow = recorded.workflows[name]
        steps = tuple(_renamed(step, names) for step in workflow.steps)
        repeat = names.get(workflow.repeat or "", workflow.repeat)
        workflows[name] = msgspec.structs.replace(workflow, steps=steps, repeat=repeat)
    known = {turn.kind for turn in newer.your_turn if is_known(newer, turn)}
    turns = [turn for turn in newer.your_turn if turn.kind in known]
    turns += [
        msgspec.structs.replace(turn, any_of=tuple(names.get(name, name) for name in turn.any_of))
        for turn in recorded.your_turn
        if turn.kind not in known
    ]
    return msgspec.structs.replace(
        newer,
        elements=elements,
        workflows=workflows,
        your_turn=tuple(turns),
        masked=_both(newer.masked, (names.get(name, name) for name in recorded.masked)),
        sign_in_origins=_both(newer.sign_in_origins, recorded.sign_in_origins),
    )


def _both(some: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*some, *more]))


def is_known(of: pack.Pack, turn: pack.YourTurn) -> bool:
    """Return whether the agent can detect the person's turn by itself."""
    return turn.url is not None or any(of.elements[name].locators for name in turn.any_of)


def _merged(
    before: Mapping[str, pack.Element], new: Mapping[str, pack.Element]
) -> tuple[dict[str, pack.Element], dict[str, str]]:
    """Return all elements, and the names of the new elements among them: a new element gets another
    name if a different element has its name.
    """
    elements, names = dict(before), {}
    for name, element in new.items():
        chosen, number = name, 2
        while chosen in elements and elements[chosen].recorded and elements[chosen] != element:
            chosen, number = f"{name}_{number}", number + 1
        if element.recorded or chosen not in elements:
            elements[chosen] = element
        names[name] = chosen
    return elements, names


def _placed(step: pack.Step, workflow: str, before: pack.Pack) -> pack.Step:
    """Make a workflow that continues a staged import open the current import instead of the
    recorded import.
    """
    staged = before.workflows.get("stage_prices")
    if not isinstance(step, pack.Goto) or workflow == "stage_prices" or staged is None:
        return step
    for one in staged.steps:
        place = place_in(one.then.url or "", step.path)
        if place and workflow in ("publish_prices", "discard_prices"):
            path = (one.then.url or "").replace("*", f"{{{one.name}}}")
            return msgspec.structs.replace(step, path=path)
    return step


def _renamed(step: pack.Step, names: Mapping[str, str]) -> pack.Step:
    then = msgspec.structs.replace(
        step.then,
        visible=names.get(step.then.visible or "", step.then.visible),
        gone=names.get(step.then.gone or "", step.then.gone),
        figure=names.get(step.then.figure or "", step.then.figure),
    )
    step = msgspec.structs.replace(step, then=then)
    element = names.get(getattr(step, "element", None) or "")
    return msgspec.structs.replace(step, element=element) if element else step
