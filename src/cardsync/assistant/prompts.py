"""Defines the prompts for sellers' most frequent questions. Each prompt is a text with placeholders
for its arguments.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Prompt(NamedTuple):
    """A prompt. `arguments` are the placeholders in `text`, each with a description; those in
    `optional` may be empty.
    """

    name: str
    title: str
    text: str
    arguments: dict[str, str] = {}  # noqa: RUF012
    optional: frozenset[str] = frozenset()


PROMPTS: Final = (
    Prompt(
        "underpriced",
        "What is underpriced?",
        "Find cards of mine that are priced under their market. Use waiting_read"
        " (recommendations.list), and inventory_list_cards. Only of the game `{game}`, or of all if"
        " none is named. For the ten that bring most, use pricing_explain_card. Show card, price, market, proposed price and why"
        " in a table. Change nothing.",
        {"game": "A game, as pokemon"},
        frozenset({"game"}),
    ),
    Prompt(
        "today",
        "What needs me today?",
        "Use shop_read (today.read, sync.status) and waiting_read (reviews.list, plans.list with"
        " status pending_review, recommendations.list). Tell me in order of urgency what needs me"
        " today, with numbers and links, and what can wait. Change nothing.",
    ),
    Prompt(
        "put_on_list",
        "Put cards on a list",
        "Put the cards that the search `{search}` finds on my list “{list}”. First show how many"
        " they are, with examples, by inventory_list_cards. Use lists_list for the list's id;"
        " if there is no such list, ask whether to create it. Then use lists_add_cards with the"
        " search, and say how many were added and how many were on it already.",
        {"search": "A search, as game:pokemon price>20", "list": "The list's name"},
    ),
    Prompt(
        "raise_set",
        "Raise a set by some percent",
        "Raise the prices of the cards that `{search}` finds by {percent}%. First use"
        " rules_read (pricing.previewDraft) with a rule of this query and adjust_bp ="
        " {percent} x 100, and show how many cards move and how much. Then use plans_propose with"
        " dry_run, tell me its risk and status, and send it only after I agree. If it waits for a"
        " click, give me confirm_url.",
        {"search": "A search, as set:“Base Set”", "percent": "A number, as 3"},
    ),
)
BY_NAME: Final = {prompt.name: prompt for prompt in PROMPTS}


def filled(prompt: Prompt, given: dict[str, str]) -> str:
    """Return the prompt's text with these arguments. Raises KeyError for a missing argument."""
    values = {
        name: given.get(name, "") if name in prompt.optional else given[name]
        for name in prompt.arguments
    }
    return prompt.text.format_map(values)
