"""Finds the conditions of the agent and of the account. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.catalog.sources.declared import BY_NAME
from cardsync.operations.catalog_age import Trouble
from cardsync.plurals import counted
from cardsync.sync.persons_turn import Turn, TurnKind
from cardsync.today.shop_facts import Condition, Facts, Kind

SILENT: Final = timedelta(hours=2)
SILENT_LONG: Final = timedelta(days=1)
FAILED_TASKS: Final = "/sync?tasks=failed"
TASKS: Final = {
    "refresh_orders": "fetching new orders",
    "backfill_orders": "fetching orders from earlier years",
    "backfill_sales_report": "fetching sales reports",
    "apply_price_updates": "importing the prices",
    "apply_rollback": "importing a rollback",
    "quick_add_listing": "importing new listings",
    "refresh_account": "refreshing the account",
}
_IN_BROWSER: Final = (
    "Do it in the browser window that the agent opened; the agent then continues on its own."
)
# The agent waits for a person at its own computer: what for, and what to do.
TURNS: Final[dict[TurnKind, tuple[str, str]]] = {
    "sign_in": (
        "sign in to the marketplace",
        _IN_BROWSER,
    ),
    "second_factor": (
        "enter the marketplace's second-factor code",
        _IN_BROWSER,
    ),
    "captcha": (
        "solve the marketplace's CAPTCHA",
        _IN_BROWSER,
    ),
    "human": (
        "do what the marketplace's page asks",
        _IN_BROWSER,
    ),
    "confirm_repair": (
        "confirm a repair",
        "A marketplace page has changed, and the agent asks on its computer before it changes anything there.",
    ),
    "paused": (
        "resume the agent",
        "It was paused on its computer, and runs no sync until it is resumed there.",
    ),
}
PAUSES: Final[dict[Kind, tuple[str, str]]] = {
    "auto_sync_paused": ("Automatic sync is paused", "Nothing runs until someone requests it."),
    "automatic_pricing_paused": (
        "Automatic pricing is paused",
        "No price is sent to the marketplace.",
    ),
}


def of_agent(facts: Facts) -> Iterator[Condition]:
    for task in facts.failed_tasks:
        yield Condition(
            "task_failed",
            "bad",
            f"The agent's last attempt at {TASKS.get(task.kind, task.kind)} failed",
            "See what happened",
            FAILED_TASKS,
            task.since,
            variant=task.kind,
        )
    seen = facts.agent_seen_at
    if seen is not None and facts.now - seen >= SILENT:
        yield Condition(
            "agent_silent",
            "bad" if facts.now - seen >= SILENT_LONG else "warn",
            "No word from the agent",
            "See when it was last seen",
            "/today#sync",
            seen,
            owner_only=False,
            detail="It is not running, or it cannot reach this service.",
        )
    if facts.turn is not None:
        yield _your_turn(facts.turn)
    failed = facts.failed_cycles
    if failed.number:
        yield Condition(
            "sync_failing",
            "warn",
            f"The last {counted(failed.number, 'sync', 'syncs')} failed",
            "Sync now",
            "/today#sync",
            failed.since,
            count=failed.number,
            owner_only=False,
            detail="The next one will be later than usual.",
        )


def _your_turn(turn: Turn) -> Condition:
    ask, how = TURNS[turn.kind]
    at = f" ({turn.host})" if turn.host else ""
    return Condition(
        "your_turn",
        "info" if turn.kind == "paused" else "bad",
        f"Your turn: {ask}{at}",
        "See the sync",
        "/today#sync",
        turn.since,
        owner_only=False,
        detail=how,
        variant=turn.kind,
    )


def of_whole_account(facts: Facts) -> Iterator[Condition]:
    if facts.deletion:
        since, due = facts.deletion
        yield Condition(
            "account_to_be_deleted",
            "bad",
            "This account is scheduled for deletion",
            "Keep account",
            "/settings/data",
            since,
            deadline=due,
            detail="Everything in it is deleted with it.",
        )
    if facts.fresh:
        yield Condition(
            "set_up_unfinished",
            "info",
            "Setup is not finished",
            "Continue",
            "/set-up/prices",
            detail="No pricing export has been uploaded yet.",
        )


def of_account(facts: Facts) -> Iterator[Condition]:
    if facts.backup:
        yield Condition(
            "backup_wrong", "bad", facts.backup, "See the backups", "/operator/installation"
        )
    for trouble in facts.catalogs:
        yield _old_catalogs(trouble)
    if facts.past_due:
        yield Condition(
            "payment_past_due",
            "bad",
            "Payment for the plan is past due",
            "See the account",
            "/account",
            detail="No price is sent to the marketplace until it is paid.",
        )
    if facts.unpaid:
        yield Condition(
            "plan_unpaid",
            "warn",
            "The account has no paid plan",
            "See the account",
            "/account",
            facts.unpaid_since,
            detail="Prices are computed, but none is sent to the marketplace.",
        )
    if facts.no_consent:
        yield Condition(
            "consent_missing",
            "warn",
            "You have not allowed writing prices to the marketplace",
            "Allow it",
            "/settings/sync",
            detail="No prices are sent there.",
        )
    for pause in facts.pauses:
        yield Condition(
            pause,
            "info",
            PAUSES[pause][0],
            "Change the settings",
            "/settings/sync",
            detail=PAUSES[pause][1],
        )


def _old_catalogs(trouble: Trouble) -> Condition:
    names = [LABEL_BY_NAME.get(game, game) for game in trouble.games]
    source = BY_NAME[trouble.source].label if trouble.source in BY_NAME else trouble.source
    alone = len(names) == 1
    return Condition(
        "catalog_old",
        "warn",
        f"The card catalog of {names[0]} is old"
        if alone
        else f"{len(names)} card catalogs from {source} are old",
        "See the catalogs",
        "/operator/catalogs",
        trouble.since,
        count=len(names),
        detail=f"{'' if alone else ', '.join(names) + '. '}Newer cards find no match."
        f" The last update failed: {trouble.reason.rstrip('.')}.",
        variant=trouble.source,
    )
