"""Finds the conditions of the agent and of the account. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from cardsync.agents.sync.persons_turn import Turn, TurnKind
from cardsync.catalog.catalog_age import Trouble
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.catalog.sources.declared import BY_NAME
from cardsync.platform.plurals import counted
from cardsync.shop.today.shop_facts import Condition, Facts, Kind

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
_IN_BROWSER: Final = "Finish this in the sync app's browser window. Sync then continues."
# For each reason why the agent waits for a person at its computer: the reason and the next step as
# texts.
TURNS: Final[dict[TurnKind, tuple[str, str]]] = {
    "sign_in": (
        "sign in to TCGplayer",
        _IN_BROWSER,
    ),
    "second_factor": (
        "enter TCGplayer's verification code",
        _IN_BROWSER,
    ),
    "captcha": (
        "solve TCGplayer's CAPTCHA",
        _IN_BROWSER,
    ),
    "human": (
        "answer what TCGplayer's page asks",
        _IN_BROWSER,
    ),
    "confirm_repair": (
        "confirm a repair",
        "A TCGplayer page has changed. Confirm on the sync app's computer before sync continues.",
    ),
    "paused": (
        "resume the sync app",
        "It was paused on its computer. Resume it there to sync again.",
    ),
}
PAUSES: Final[dict[Kind, tuple[str, str]]] = {
    "auto_sync_paused": ("Automatic sync is paused", "Nothing syncs until you click Sync now."),
    "automatic_pricing_paused": (
        "Automatic pricing is paused",
        "No prices are sent to TCGplayer.",
    ),
}


def of_agent(facts: Facts) -> Iterator[Condition]:
    for task in facts.failed_tasks:
        yield Condition(
            "task_failed",
            "bad",
            f"The sync app's last attempt at {TASKS.get(task.kind, task.kind)} failed",
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
            "The sync app isn't responding",
            "See when it was last seen",
            "/today#sync",
            seen,
            owner_only=False,
            detail="It isn't running, or it can't reach this server.",
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
            detail="The next one starts later than usual.",
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
            detail="All of its data will be deleted.",
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
            detail="No prices are sent to TCGplayer until it is paid.",
        )
    if facts.unpaid:
        yield Condition(
            "plan_unpaid",
            "warn",
            "The account has no paid plan",
            "See the account",
            "/account",
            facts.unpaid_since,
            detail="You see new prices, but none are sent to TCGplayer.",
        )
    if facts.no_consent:
        yield Condition(
            "consent_missing",
            "warn",
            "Sending prices to TCGplayer is off",
            "Turn it on",
            "/settings/sync",
            detail="No prices are sent.",
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
        f"The card catalog for {names[0]} is old"
        if alone
        else f"{len(names)} card catalogs from {source} are old",
        "See the catalogs",
        "/operator/catalogs",
        trouble.since,
        count=len(names),
        detail=f"{'' if alone else ', '.join(names) + '. '}Newer cards can't be matched."
        f" The last update failed: {trouble.reason.rstrip('.')}.",
        variant=trouble.source,
    )
