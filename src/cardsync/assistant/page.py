"""Prints docs/assistants.md from the bindings, the tools, the prompts and the errors."""

from __future__ import annotations

from typing import Final

from cardsync.assistant import code_mode, tool_answers, tools
from cardsync.assistant.bindings import TABLE, Binding, shapes, shown
from cardsync.assistant.prompts import PROMPTS
from cardsync.assistant.refusals import NEXT, OTHERWISE

_INTRODUCTION: Final = """\
# Assistants: the shop by conversation

An assistant reaches the shop at `<PUBLIC_URL>/mcp`: the Model Context Protocol, version 2026-07-28
and those of 2025, without sessions, each answer one JSON document. This page is printed by
`cardsync assistants`.

## Connect

Give a client that signs in by itself the address `<PUBLIC_URL>/mcp`: an owner approves it on a page,
and chooses what it may do ([assistants-authorization.md](assistants-authorization.md)). The page
*Settings, Assistants* shows the steps for each well-known client, tests the connection, and sets
what a connected assistant may do without asking.

A client without sign-in takes an API key or a token (`cardsync admin token create`) as a bearer:

```
claude mcp add --transport http cardsync https://shop.example/mcp --header "Authorization: Bearer csk_…"
```

For clients that start a program, `cardsync-agent mcp` speaks the protocol on its standard input and
output, and passes it on to the service with the agent's key:

```json
{"mcpServers": {"cardsync": {"command": "cardsync-agent",
  "args": ["mcp", "--server", "https://shop.example"], "env": {"CARDSYNC_AGENT_KEY": "csk_…"}}}}
```

## Modes

A token with `mcp:read` alone is a session that reads: a write is 403 `insufficient_scope` before its
arguments are looked at, with the scope and the address of the metadata in `WWW-Authenticate`. A token
with `mcp:write` too, and an API key, write. Nothing that an assistant sends changes the mode. A
browser's session is no credential here. What a write may do to prices, and when it waits for a
click, is in [plans.md](plans.md).

A binding is called as a request of the service to itself with the caller's own credential, so rights,
rate limits, checks, the activity feed and the log are those of the route. Writes of shelves, the
recovery of listings, confirmations and everything else that takes a signed-in member have no
binding; shelves are read by `inventory.listCards` (`box:3`, sort `location`).

## Answers

The first text of an answer marks what follows as data, the second is the JSON of the interface.
`detail: concise` (the default) leaves fields out of long lists, `full` has all. An answer has at most
100,000 bytes (25,000 tokens); lists lose their ends until it fits, and `cut` says how many rows are
left. Pages are asked for by `page` and `per_page`.

Scripts and other programs take a typed client of the API: [the API guide](api.md#clients-in-your-language).
"""


def page() -> str:
    parts = [
        _INTRODUCTION,
        _section("Tools", "| tool | bindings | hints |", _tool_rows()),
        _section(
            "Bindings",
            "| binding | operation | scope | risk | answer | what it does |",
            [_row(binding) for binding in TABLE],
        ),
        _code_mode(),
        _section(
            "Prompts",
            "| prompt | arguments | what it asks |",
            [
                f"| `{one.name}` | {', '.join(one.arguments) or '–'} | {one.title} |"
                for one in PROMPTS
            ],
        ),
        _section(
            "Refusals",
            "| code | what to do next |",
            [
                *(f"| `{code}` | {told} |" for code, told in sorted(NEXT.items())),
                f"| any other | {OTHERWISE} |",
            ],
            "A refusal is the answer's text: the code, its sentence, its figures, and what to do"
            " next. `needs_review` is no error: it waits for a click at `confirm_url`.",
        ),
    ]
    return "\n".join(parts)


def _section(title: str, head: str, rows: list[str], before: str = "") -> str:
    rule = "|".join(["", *["---"] * (head.count("|") - 1), ""])
    lines = [f"## {title}", "", *([before, ""] if before else []), head, rule, *rows, ""]
    return "\n".join(lines)


def _tool_rows() -> list[str]:
    return [
        f"| `{tool.name}` | {', '.join(f'`{one.name}`' for one in tool.bindings)}"
        f" | {_hints(tool.hints)} |"
        for tool in tools.tools().values()
    ] + [f"| `{code_mode.TOOL}` | all, as functions | {_hints(code_mode.HINTS)} |"]


def _hints(hints: dict[str, bool]) -> str:
    said = [name.removesuffix("Hint") for name, value in hints.items() if value]
    return ", ".join(said) or "–"


def _row(binding: Binding) -> str:
    taken = ", ".join(shown(one) for one in shapes()[binding.name].arguments)
    answer = shapes()[binding.name].answer
    return (
        f"| `{binding.name}({taken})` | {binding.method} {binding.path} | {binding.scope}"
        f" | {binding.risk} | {f'`{answer}`' if answer else '–'} | {binding.title} |"
    )


def _code_mode() -> str:
    return f"""\
## Code mode

`{code_mode.TOOL}` takes a small Python program. Each binding is a function: `lists.addCards` is
`lists_add_cards`, its arguments in the order of the table or by name (`from_` for `from`). It returns
the JSON of the interface in full; a refusal raises RuntimeError, which the program may catch. The
result is the program's last expression. There is no file, no network, no import of what is outside.

| limit | at most |
|---|---|
| computing | {code_mode.SECONDS:g} s |
| memory | {code_mode.MEMORY:,} bytes |
| depth of calls | {code_mode.DEPTH} |
| calls of bindings | {code_mode.CALLS} |
| what it prints | {code_mode.PRINTED:,} bytes |
| what it answers | {tool_answers.LARGEST:,} bytes |
| programs at once | one of a seller, {code_mode.WORKERS} of a process |

Each call is made as if it had come alone: the credential is looked at again, limits count it, the log
has its line. A call that comes too soon waits up to {code_mode.LONGEST_WAIT} s for its turn. A program
that breaks tells why and what it had done: each write with its outcome.
"""
