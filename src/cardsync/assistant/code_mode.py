"""Runs an assistant's small program in a sandbox. Each binding is a function in the program.

The interpreter runs in a worker process without files, network or imports, and with limits of time,
memory, calls and output. So a program can only compute and call bindings. The interpreter stops at
each call, and this process makes the call like a separate request, for which the credential is
checked again. If a program fails, the report lists the writes that it made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from cardsync.access.caller import ADMITTED
from cardsync.assistant import own_api, refusals, tool_answers
from cardsync.assistant.bindings import TABLE, Binding, shapes, shown
from cardsync.platform import errors
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json, JsonObject

if TYPE_CHECKING:
    from litestar.types import Scope
    from pydantic_monty import AsyncFunctionSnapshot, AsyncMonty, AsyncSnapshot, ExternalResult

log = structlog.get_logger(__name__)

TOOL: Final = "run"
PROGRAM_CHARACTERS: Final = 50_000
SECONDS: Final = 5.0
MEMORY: Final = 50_000_000
DEPTH: Final = 200
CALLS: Final = 500
PRINTED: Final = 50_000
# The most values and characters in a call's arguments or in a program's result. A list that occurs
# twice in another list counts twice, as it would in JSON.
VALUES: Final = 100_000
CHARACTERS: Final = 10_000_000
# The most programs that run in a process at the same time; a seller may run one. Further programs
# are refused. WAIT_SECONDS is the longest wait for an interpreter to begin.
WORKERS: Final = 4
WAIT_SECONDS: Final = 5
# A program is ended this many seconds before its request times out, so that its outcome can still
# be reported.
_EARLIER: Final = 2.0
# A call that exceeds a rate limit is repeated if the wait is at most this many seconds, and refused
# otherwise.
LONGEST_WAIT: Final = 3
SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "program": {
            "type": "string",
            "description": "Python without imports; its last expression is the result",
        }
    },
    "required": ["program"],
    "additionalProperties": False,
}
HINTS: Final = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
FUNCTIONS: Final[Mapping[str, Binding]] = {one.function: one for one in TABLE}
_LIMITS: Final[dict[str, object]] = {
    "max_feed_duration_secs": SECONDS,
    "max_memory": MEMORY,
    "max_recursion_depth": DEPTH,
    "max_suspensions": 2 * CALLS,
    "max_total_sleep_secs": 0,
}


def _function(*_: object, **__: object) -> None:
    """Represents a binding in a program. The interpreter stops at its call and never runs this
    body.
    """
    raise AssertionError("a call of a binding is made by `_called`")


_NAMES: Final = dict.fromkeys(FUNCTIONS, _function)


def description() -> str:
    """Return the tool's description, which lists the functions and their arguments."""
    functions = ", ".join(
        f"{name}({', '.join(shown(one) for one in shapes()[binding.name].arguments)})"
        for name, binding in FUNCTIONS.items()
    )
    return (
        "Runs a small Python program in a sandbox, in place of many calls. Functions return the"
        f" JSON of the interface; a refusal raises RuntimeError. No await. Functions: {functions}"
    )


@dataclass(slots=True)
class _Program:
    """A running program: its calls by function, and its writes with their outcomes."""

    calls: Counter[str] = field(default_factory=Counter)
    writes: list[str] = field(default_factory=list)

    def done(self) -> JsonObject:
        reads = {name: count for name, count in self.calls.items() if not _writes(name)}
        return {"reads": reads, "writes": self.writes}


def _writes(name: str) -> bool:
    return FUNCTIONS[name].writes


class Broken(Exception):
    """A program failed. The text has the reason and the calls that the program had made."""


async def run(scope: Scope, arguments: Mapping[str, object]) -> list[str]:
    """Run a program and return the blocks of its answer. Raises Broken, InvalidPayload,
    ServiceUnavailable.
    """
    program = arguments.get("program")
    if not isinstance(program, str) or not program.strip() or len(arguments) > 1:
        raise errors.InvalidPayload("program: must be a program, and the only argument")
    if len(program) > PROGRAM_CHARACTERS:
        raise errors.InvalidPayload(f"program: has more than {PROGRAM_CHARACTERS:,} characters")
    state = scope["litestar_app"].state
    settings: Settings = state.settings
    sandboxes: Sandboxes = state.assistants.sandboxes
    done = _Program()
    try:
        async with (
            asyncio.timeout(max(1.0, settings.request_seconds - _EARLIER)),
            sandboxes.turn(ADMITTED.of(scope).seller_id) as pool,
        ):
            result, printed = await _execute(pool, scope, program, done)
    except TimeoutError:
        raise Broken(_broken("it took too long", done)) from None
    if _is_too_large(result):
        raise Broken(_broken("its result is too large; return less", done))
    told: dict[str, object] = {"result": result, **done.done()}
    if printed:
        told["printed"] = printed
    try:
        return [tool_answers.DATA, tool_answers.fitting(msgspec.to_builtins(told, str_keys=True))]
    except (TypeError, ValueError, RecursionError):
        raise Broken(_broken("its result is not JSON", done)) from None


def _is_too_large(*values: object) -> bool:
    """Return whether the values are larger than a request may be. A value that occurs several times
    counts each time. Counting stops at the limit.
    """
    left, characters, waiting = VALUES, CHARACTERS, list(values)
    while waiting:
        value = waiting.pop()
        left -= 1
        match value:
            case dict():
                waiting += value.keys()
                waiting += value.values()
            case list() | tuple() | set() | frozenset():
                waiting += value
            case str() | bytes():
                characters -= len(value)
            case int():
                characters -= value.bit_length() // 3
        if left < len(waiting) or characters < 0:
            return True
    return False


def _broken(reason: str, done: _Program) -> str:
    told = tool_answers.fitting(done.done())
    return f"The program broke: {reason}\nIt had done: {told}"


async def _execute(
    pool: AsyncMonty, scope: Scope, program: str, done: _Program
) -> tuple[object, str]:
    import pydantic_monty as monty

    printed = monty.CollectString(max_bytes=PRINTED)
    try:
        async with pool.checkout(limits=_LIMITS) as session:  # type: ignore[arg-type]
            step: AsyncSnapshot = await session.feed_start(
                program, external_lookup=_NAMES, print_callback=printed
            )
            while not isinstance(step, monty.MontyComplete):
                if isinstance(step, monty.AsyncFunctionSnapshot):
                    step = await _called(step, scope, done)
                elif isinstance(step, monty.AsyncNameLookupSnapshot):
                    step = await step.resume_auto()
                else:
                    raise Broken(_broken("it awaits something; functions need no await", done))
            return step.output, printed.output
    except (monty.MontyRuntimeError, monty.MontySyntaxError) as failure:
        raise Broken(_broken(failure.display()[-2_000:], done)) from None
    except monty.MontyError as failure:
        raise Broken(_broken(str(failure)[:500], done)) from None
    except Broken:
        raise
    except Exception:
        log.exception("program_crashed")
        raise Broken(_broken("an error of the service", done)) from None


async def _called(step: AsyncFunctionSnapshot, scope: Scope, done: _Program) -> AsyncSnapshot:
    """Make the call at which the program stopped, and resume the program."""
    name = str(step.function_name)
    if step.is_os_function:
        return await step.resume_not_handled()
    binding = FUNCTIONS.get(name)
    if binding is None:
        failure: Exception = NameError(f"name {name!r} is not defined")
        return await step.resume({"exception": failure})
    if done.calls.total() >= CALLS:
        failure = RuntimeError(f"Refused: a program has at most {CALLS} calls")
        return await step.resume({"exception": failure})
    if _is_too_large(step.args, step.kwargs):
        failure = RuntimeError("Refused: the arguments are too large")
        return await step.resume({"exception": failure})
    done.calls[name] += 1
    place = len(done.writes)
    if binding.writes:
        done.writes.append(f"{name}: begun, its outcome is not known")
    try:
        value = await _answer(scope, binding, step.args, step.kwargs)
    except refusals.Refusal as refusal:
        outcome = f"{'waits for a click' if refusal.is_pending else 'refused'} ({refusal.code})"
        resumed: ExternalResult = {"exception": RuntimeError(str(refusal))}
    else:
        outcome, resumed = f"done{_id(value)}", {"return_value": value}
    if binding.writes:
        done.writes[place] = f"{name}: {outcome}"
    return await step.resume(resumed)


def _id(value: object) -> str:
    """Return the ID and the status in the answer of a write, if the answer has them."""
    named = [value.get(key) for key in ("id", "plan_id")] if isinstance(value, dict) else []
    found = [one for one in named if isinstance(one, int | str)]
    status = value.get("status") if isinstance(value, dict) else None
    told = [f"id {found[0]}"] if found else []
    if isinstance(status, str):
        told.append(status)
    return f" ({', '.join(told)})" if told else ""


async def _answer(
    scope: Scope, binding: Binding, given: tuple[object, ...], named: Mapping[str, object]
) -> Json:
    """Make a call and return its answer as a value for the program. Raises Refusal."""
    try:
        arguments = _arguments(binding, given, named)
        answer = await own_api.call(scope, binding, arguments, None)
        # A short wait for a rate limit happens here, so the program does not notice it.
        while answer.wait is not None and answer.wait <= LONGEST_WAIT:
            await asyncio.sleep(answer.wait)
            answer = await own_api.call(scope, binding, arguments, None)
    except errors.Problem as problem:
        raise refusals.of_problem(problem) from None
    if answer.is_refusal:
        raise refusals.of_answer(answer)
    if not answer.is_json:
        return answer.body.decode("utf-8", "replace")
    return msgspec.json.decode(answer.body)


def _arguments(
    binding: Binding, given: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments by name. Positional arguments are in the order of the binding's
    arguments. Python programs write `from_` for an argument that is named `from`.
    """
    names = [one.name for one in shapes()[binding.name].arguments]
    if len(given) > len(names):
        raise errors.InvalidPayload(f"{binding.function} takes at most {len(names)} arguments")
    return dict(zip(names, given, strict=False)) | {
        name.rstrip("_"): value for name, value in named.items()
    }


class Sandboxes:
    """The interpreters' worker processes of a web process, which has one object of this class. They
    start with the first program.
    """

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._pool: AsyncMonty | None = None
        self._opening = asyncio.Lock()
        self._running: set[int] = set()

    @asynccontextmanager
    async def turn(self, seller_id: int) -> AsyncIterator[AsyncMonty]:
        """Hold the seller's turn. Raises ServiceUnavailable if the seller or the process already
        runs as many programs as allowed.
        """
        if seller_id in self._running or len(self._running) >= WORKERS:
            raise errors.ServiceUnavailable("other programs are running; try again in a moment")
        self._running.add(seller_id)
        try:
            yield await self._opened()
        finally:
            self._running.discard(seller_id)

    async def _opened(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                from pydantic_monty import AsyncMonty

                self._pool = await self._stack.enter_async_context(
                    AsyncMonty(
                        max_processes=WORKERS,
                        checkout_timeout=WAIT_SECONDS,
                        max_checkouts_per_worker=100,
                    )
                )
            return self._pool

    async def close(self) -> None:
        await self._stack.aclose()
