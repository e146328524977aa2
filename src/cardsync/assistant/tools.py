"""Groups the bindings into the protocol's tools, with reads and writes in separate tools, and calls
them.

A tool with several bindings has an argument `what` that names one of them. The tool's title is the
names of its bindings. Each tool has all four hints of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from cardsync.access.caller import ADMITTED
from cardsync.assistant import code_mode, own_api, refusals, tool_answers
from cardsync.assistant.bindings import TABLE, Binding, shapes, shown
from cardsync.platform import errors
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from litestar.types import Scope

TOOLS_MOST: Final = 20
# The writes whose hints differ from those of other tools. DESTROYS delete something or change
# prices. REPEATS are not idempotent: a second list with the same name is refused, and a second plan
# is a new plan. OPEN_WORLD answer with data of other sellers.
DESTROYS: Final = {"lists_delete", "lists_remove_cards", "plans_propose", "recommendations_decide"}
REPEATS: Final = {"lists_create", "plans_propose"}
# Tools that once had only one operation. Callers that do not send `what` still get that operation.
WAS_ALONE: Final = {"plans_propose"}
OPEN_WORLD: Final = {"discovery_find_availability"}
_DETAIL: Final = {
    "type": "string",
    "enum": ["concise", "full"],
    "description": "concise by default; full has every field",
}
SEARCH: Final = (
    "Search: name:pikachu set:base game:pokemon cond:NM price>=5 qty>1 list:<slug> box:3 loc:3-7"
    " is:unshelved is:gone, joined by spaces"
)


class Tool(NamedTuple):
    name: str
    bindings: tuple[Binding, ...]

    @property
    def writes(self) -> bool:
        return self.bindings[0].writes

    @property
    def title(self) -> str:
        return ", ".join(binding.name for binding in self.bindings)

    @property
    def hints(self) -> dict[str, bool]:
        """Return the protocol's four hints by name."""
        return {
            "readOnlyHint": not self.writes,
            "destructiveHint": self.name in DESTROYS,
            "idempotentHint": self.name not in REPEATS,
            "openWorldHint": self.name in OPEN_WORLD,
        }

    @property
    def has_detail(self) -> bool:
        return any(binding.name in tool_answers.CONCISE for binding in self.bindings)

    @property
    def description(self) -> str:
        if len(self.bindings) == 1:
            [only] = self.bindings
            about = f"{only.title}."
            return f"{about} {SEARCH}." if self.name == "inventory_list_cards" else about
        return "\n".join(f"{one.name}({_signature(one)}): {one.title}." for one in self.bindings)

    def schema(self) -> JsonObject:
        """Return the JSON Schema of the tool's arguments; with several bindings, of the arguments
        of all.
        """
        properties: dict[str, object] = {}
        if len(self.bindings) > 1:
            names = [binding.name for binding in self.bindings]
            properties["what"] = {"type": "string", "enum": names}
        for binding in self.bindings:
            for one in shapes()[binding.name].arguments:
                properties.setdefault(one.name, dict(one.schema))
        if self.has_detail:
            properties["detail"] = _DETAIL
        required = (
            ["what"] * (self.name not in WAS_ALONE)
            if len(self.bindings) > 1
            else [one.name for one in shapes()[self.bindings[0].name].arguments if one.required]
        )
        schema: dict[str, object] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return {**schema, "additionalProperties": False}

    def chosen(self, arguments: JsonObject) -> Binding:
        """Return the binding that the argument `what` names, and remove `what` from the arguments.
        Raises InvalidPayload.
        """
        if len(self.bindings) == 1:
            return self.bindings[0]
        alone = self.bindings[0].name if self.name in WAS_ALONE else None
        what = arguments.pop("what", alone)
        for binding in self.bindings:
            if binding.name == what:
                return binding
        raise errors.InvalidPayload(f"what: must be one of {self.title}")


def _signature(binding: Binding) -> str:
    return ", ".join(shown(one) for one in shapes()[binding.name].arguments)


@cache
def tools() -> Mapping[str, Tool]:
    """Return the tools by name, in the order of the bindings' table. The tool of the code mode is
    not among them.
    """
    grouped = groupby(sorted(TABLE, key=lambda one: _place(one.tool)), key=lambda one: one.tool)
    return {name: Tool(name, tuple(bindings)) for name, bindings in grouped}


def _place(tool: str) -> int:
    return next(at for at, binding in enumerate(TABLE) if binding.tool == tool)


def writing(name: str) -> bool:
    """Return whether a call of this tool needs the scope for writing."""
    tool = tools().get(name)
    return tool is not None and tool.writes


async def call(scope: Scope, name: str, arguments: dict[str, object]) -> list[str]:
    """Call a tool and return the text blocks of its answer. Raises Refusal."""
    caller = ADMITTED.of(scope)
    try:
        if name == code_mode.TOOL:
            return await code_mode.run(scope, arguments)
        tool = tools()[name]
        detail = _detail(tool, arguments)
        binding = tool.chosen(arguments)
        answer = await own_api.call(scope, binding, arguments, caller)
    except errors.Problem as problem:
        raise refusals.of_problem(problem) from None
    if answer.is_refusal:
        raise refusals.of_answer(answer)
    return tool_answers.texts(binding.name, answer, detail)


def _detail(tool: Tool, arguments: JsonObject) -> tool_answers.Detail:
    detail = arguments.pop("detail", "concise") if tool.has_detail else "concise"
    if detail not in ("concise", "full"):
        raise errors.InvalidPayload("detail: must be concise or full")
    return cast(tool_answers.Detail, detail)
