"""Runs `cardsync demo`: creates a demo seller, runs one whole cycle of the real agent over HTTP and
prints its steps, and then serves the shop until Ctrl-C.

The data stays in DATA_DIR. A second run finds the seller, the cards and their targets, and starts
in seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
from rich.console import Console
from rich.markup import escape
from sqlalchemy import text

from cardsync.catalog.load_catalog import import_catalog
from cardsync.operations.processes import bind_address
from cardsync.operations.processes.supervisor import (
    Stopped,
    database,
    processes,
    stop_on_signals,
    supervise,
    wait_until_ready,
)
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.money import to_units, usd
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json, JsonObject, NamedRow
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.engine.simulate import simulate
from cardsync.prices.inputs import rule_rows as store
from cardsync.prices.receipts import sentences
from cardsync.shop.accounts import sellers
from cardsync.shop.operators import appoint
from cardsync_demo import (
    customers_box,
    demo_catalog,
    market,
    order_files,
    other_shops,
    past_lots,
    past_year,
    simulated_marketplace,
)
from cardsync_demo import order_texts as orders_of_the_day

console = Console(highlight=False, soft_wrap=True)
EXPORT = "pricing-export.csv"
CYCLE_DONE = "cycle-done"
EMAIL = "demo@example.com"
LINES = ["magic", "pokemon", "yugioh", "lorcana", "one_piece", "flesh_and_blood"]


@dataclass(frozen=True)
class DemoSeller:
    seller_id: int
    api_key: str
    email: str
    password: str
    folder: Path
    is_new: bool


def say(line: str) -> None:
    console.print(f"  {line}", style="dim", markup=False)


def run(settings: Settings, *, leave: bool, marketplace: bool = False) -> None:
    """Run the demo. With `leave`, stop after the cycle; else serve until SIGTERM or Ctrl-C. With
    `marketplace`, a simulated marketplace runs beside it.
    """
    stop_on_signals()
    # The demo itself prints its steps, so the processes print only problems.
    os.environ.setdefault("CARDSYNC_LOG_LEVEL", "warning")
    # The demo needs no network, because the service draws the pictures of its cards.
    os.environ["CARDSYNC_PICTURE_HOSTS"] = ""
    settings = settings.model_copy(update={"picture_hosts": ""})
    try:
        with bind_address.alone(settings):
            _story(settings, leave=leave, marketplace=marketplace)
    except Stopped:
        console.print("\nStopped; the data stays for the next run.")


def _story(settings: Settings, *, leave: bool, marketplace: bool) -> None:
    bind_address.find_free(settings, say)
    with database(settings, say) as ready:
        demo = asyncio.run(_prepare(ready))
        with processes(ready) as children, ExitStack() as held:
            wait_until_ready(ready, children, say)
            uploads = _first_cycles(ready, demo) if demo.is_new else []
            asyncio.run(_show_prices(ready, demo))
            order_files.show(console, f"http://{ready.bind}", demo.api_key, uploads)
            if demo.is_new:
                said = asyncio.run(market.observe(ready, demo.seller_id))
                market.show(console, f"http://{ready.bind}", demo.api_key, said)
                box = asyncio.run(customers_box.file_of(ready, demo.seller_id))
                customers_box.show(console, f"http://{ready.bind}", demo.api_key, box)
                keys = asyncio.run(other_shops.join(ready, demo.seller_id, LINES))
                other_shops.show(console, f"http://{ready.bind}", demo.api_key, keys)
            _show_address(ready, demo)
            held.enter_context(_beside(ready, marketplace=marketplace))
            if leave:
                _show_sign_in(ready, demo)
                return
            console.print("\nServing until Ctrl-C. Open this page and sign in:", style="bold")
            _show_sign_in(ready, demo)
            supervise(children)


@contextmanager
def _beside(settings: Settings, *, marketplace: bool) -> Iterator[None]:
    if not marketplace:
        yield
        return
    folder = settings.data_dir / "demo-marketplace"
    with simulated_marketplace.running(folder) as said:
        config = asyncio.run(simulated_marketplace.seller_of(settings, folder))
        simulated_marketplace.show(console, said, config)
        yield


async def _prepare(settings: Settings) -> DemoSeller:
    """Return the demo seller, who is created in the first run."""
    assert settings.database_url is not None
    folder = settings.data_dir / "demo"
    note = folder / "seller.json"
    if note.exists():
        kept = json.loads(note.read_text())
        return DemoSeller(
            kept["seller_id"],
            kept["api_key"],
            kept.get("email", ""),
            kept.get("password", ""),
            folder,
            is_new=not _had_a_cycle(folder),
        )
    async with Database.open(
        settings.database_url, pool=2, hot_pool=1, seal=partial(seal, settings)
    ) as opened:
        say(await import_catalog(opened, demo_catalog.CATALOG, "csv", None, say))
        made = await _demo_seller(opened)
        await market.set_limits(opened, made.seller_id)
    # The demo's owner is also an operator, so that the demo shows the operator's pages.
    assert settings.migration_database_url is not None
    async with (
        Database.open(settings.migration_database_url, pool=1, hot_pool=1, role=None) as opened,
        opened.shared() as session,
    ):
        await appoint.add(session, made.email, clock.now())
    folder.mkdir(parents=True, exist_ok=True)
    draft = note.with_suffix(".part")
    draft.touch(mode=0o600)
    kept = {name: getattr(made, name) for name in ("seller_id", "api_key", "email", "password")}
    draft.write_text(json.dumps(kept))
    draft.rename(note)
    return DemoSeller(**kept, folder=folder, is_new=True)


async def _demo_seller(database: Database) -> sellers.CreatedSeller:
    """Create the demo's seller. If an earlier run was interrupted, its email address is taken, so
    use another.
    """
    addresses = (EMAIL, f"demo-{clock.now():%Y%m%d%H%M%S}@example.com")
    async with database.shared() as session:
        email = addresses[await sellers.is_taken(session, EMAIL)]
        return await sellers.create_seller(
            session,
            name="Demo Cards",
            email=email,
            plan="founder",
            lines=LINES,
            sync_mode="full",
        )


def _had_a_cycle(folder: Path) -> bool:
    return (folder / CYCLE_DONE).exists()


def _first_cycles(settings: Settings, demo: DemoSeller) -> list[int]:
    """Let the agent first sync yesterday's prices, and then today's with the shop's orders of the
    whole year. Return the IDs of the uploads of orders.
    """
    inbox = demo.folder / "inbox"
    inbox.mkdir(parents=True, exist_ok=True)
    demo_catalog.write_inventory(inbox / EXPORT, age=1)
    for _ in _agent_events(settings, demo, "pricing"):
        pass
    say(f"{asyncio.run(past_year.write(settings, demo.seller_id))} prices of the past year")
    shutil.copyfile(demo_catalog.INVENTORY, inbox / EXPORT)
    # Today in a new seller's time zone, so that no order of the demo is in the future.
    today = clock.now().astimezone(ZoneInfo("America/New_York")).date()
    files = orders_of_the_day.files(today)
    for name, content in files.items():
        (inbox / name).write_text(content, encoding="utf-8", newline="")
    order_files.send_older_months(
        f"http://{settings.bind}", demo.api_key, files["sales-summary.csv"]
    )
    console.rule("[bold]one cycle, as the seller's agent runs it", align="left")
    uploads: list[int] = []
    for event in _agent_events(settings, demo, "full"):
        _show(event)
        uploads += event.get("upload_ids", [])
    say(f"{asyncio.run(past_lots.write(settings, demo.seller_id))} lots of cards that were bought")
    (demo.folder / CYCLE_DONE).touch()
    return uploads


def _agent_events(
    settings: Settings,
    demo: DemoSeller,
    kind: str,
) -> Iterator[JsonObject]:
    """Run one cycle of the real agent in its own process; yield the events that it prints, one per
    line.
    """
    key_file = demo.folder / "key.txt"
    key_file.touch(mode=0o600)
    key_file.write_text(demo.api_key)
    command = [
        sys.executable,
        "-m",
        "cardsync_agent",
        "run",
        "--server",
        f"http://{settings.bind}",
        "--key-file",
        str(key_file),
        "--folder",
        str(demo.folder),
        "--once",
        "--request",
        kind,
        "--json-events",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        for line in agent.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def _show(event: JsonObject) -> None:
    match event:
        case {"event": "upload_done", "report": report}:
            _show_report(report)
        case {"event": "export_saved", "path": path, "rows": rows}:
            console.print(f"[green]✓[/] {rows} price updates saved: [bold]{path}[/]")
        case {"event": "cycle_started", **rest}:
            console.print(
                f"[green]✓[/] the server said sync ({rest.get('reason', 'manual_request')})"
            )
        case {"event": "cycle_finished", "status": status}:
            console.print(f"[green]✓[/] cycle reported: {status}")
        case {"event": name, **rest} if name in ("error", "warning"):
            console.print(f"[yellow]![/] {rest.get('message', name)}")
        case _:
            order_files.show_sent(console, event)


def _show_report(report: JsonObject) -> None:
    console.print(
        f"[green]✓[/] {report['rows']} rows read: {report['matched']} matched, {report['provisional']} provisional, "
        f"{report['rejected_count']} rejected, {report['duplicates']} duplicate"
    )
    for row in report["rejected"]:
        console.print(f"    line {row['line']}: {row['message']} ({row['code']})", markup=False)
    for row in report.get("noted", []):
        console.print(
            f"    line {row['line']}: {row['message']} ({row['code']}, row kept)",
            markup=False,
        )
    blocked = ", ".join(f"{code} {n}" for code, n in report.get("blocked", {}).items())
    console.print(
        f"[green]✓[/] {report['priced']} priced, {report['changed']} changed"
        + (f"; kept: {blocked}" if blocked else "")
    )


PRICES_SQL = text("""
    SELECT c.* FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND c.target_price IS DISTINCT FROM c.price
       AND c.target_price IS NOT NULL
     ORDER BY c.listing_id
""")


async def _show_prices(settings: Settings, demo: DemoSeller) -> None:
    """Print the first ten price changes, each with its explanation by the pricing engine."""
    assert settings.database_url is not None
    async with (
        Database.open(settings.database_url, pool=1, hot_pool=1) as opened,
        opened.tenant(demo.seller_id) as session,
    ):
        rules = await store.rules_of(session, demo.seller_id)
        rows = [
            dict(row)
            for row in (await session.execute(PRICES_SQL, {"seller": demo.seller_id})).mappings()
        ]
    console.rule(f"[bold]the first ten of {len(rows)} price changes", align="left")
    for row in rows[:10]:
        old = usd(row["price"]) or "-"
        new = usd(row["target_price"])
        console.print(
            f"  {old:>8} → [bold]{new:>8}[/]  {escape(row['product_name'])} · {escape(row['condition_label'])}"
        )
        console.print(f"{'':22}[dim]{escape(_why(row, rules))}[/]")


def _why(row: NamedRow, rules: list[Json]) -> str:
    amounts = {name: row[name] for name in ("market", "low", "low_with_shipping", "direct_low")}
    card = pl.DataFrame(
        {
            "marketplace_id": [row["marketplace_id"]],
            "condition": [row["condition"]],
            "printing": [row["printing"]],
            "language": [row["language"]],
            "quantity": [row["quantity"]],
            "custom": [row["custom"]],
            "observed_at": [row["observed_at"]],
            "current_price": [None if row["price"] is None else to_units(row["price"])],
            **{
                name: [None if value is None else to_units(value)]
                for name, value in amounts.items()
            },
        },
        schema_overrides={
            **dict.fromkeys((*amounts, "current_price"), pl.Int64),
            "condition": pl.String,
        },
    )
    run = Run(rules, SellerPricing(), row["priced_at"])
    priced = simulate(run, card).cards
    facts = {
        step["name"]: str(step["summary"])
        for step in sentences.explain(priced.row(0, named=True), run)
    }
    return " ".join(
        facts[name] for name in ("price_source", "formula", "bounds", "cap") if name in facts
    )


def _show_address(settings: Settings, demo: DemoSeller) -> None:
    console.rule("[bold]yours to try", align="left")
    console.print(f"URL  http://{settings.bind}\nkey  {demo.api_key}")
    console.print(
        f'\n  curl -H "Authorization: Bearer {demo.api_key}" http://{settings.bind}/api/v1/status',
        markup=False,
        style="dim",
    )


def _show_sign_in(settings: Settings, demo: DemoSeller) -> None:
    """Print the address and the sign-in for a browser as the last lines."""
    if demo.password:
        console.print(
            f"\n  http://{settings.bind}/sign-in\n  email     {demo.email}\n  password  {demo.password}",
            markup=False,
        )
