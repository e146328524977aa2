"""Prints the results of the demo's orders from the server's answers."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal

import httpx
from rich.console import Console

from cardsync.platform import clock
from cardsync.platform.value_types import JsonObject

MOST_WAIT = 60.0
PER_PAGE = 200
# The agent sends this many months of the sales summary per cycle.
AGENT_MONTHS = 2
SHIPPING = {"pwe": "in a plain envelope", "tracked": "tracked", "expedited": "expedited"}


def show_sent(console: Console, event: JsonObject) -> None:
    match event:
        case {"event": "rows_sent", "rows": rows, "text": text}:
            console.print(f"[green]✓[/] {text}" if rows else f"[yellow]![/] {text}")
        case {"event": "rows_unreadable", "path": path, "problems": problems}:
            for problem in problems:
                name = path.rpartition("/")[2]
                console.print(
                    f"    {name}, line {problem['line']}: {problem['problem']}",
                    markup=False,
                )


def show(console: Console, server: str, api_key: str, upload_ids: Iterable[int]) -> None:
    """Print the results of the orders. Without orders nothing is printed."""
    with httpx.Client(
        base_url=server,
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=30,
    ) as http:
        skipped = sum(finished(http, upload_id)["skipped"] for upload_id in upload_ids)
        months = _json(http, "/api/v1/sales_report")
        counts, orders = _orders(http)
    if not orders:
        return
    console.rule(f"[bold]what became of {len(orders)} orders", align="left")
    items = sum(order["items_total_count"] for order in orders)
    console.print(f"  items     {items} lines belong to their orders, {skipped} found none")
    console.print(f"  status    {_counts(counts)}")
    console.print(
        f"  shipping  {_counts(Counter(SHIPPING[order['shipping_type']] for order in orders))}"
    )
    console.print(f"  refunds   {_refunds(orders)}")
    console.print(
        f"  feedback  {sum(order['feedback_rating'] is not None for order in orders)} orders"
    )
    console.print(f"  sales     {_sales(orders)}; {_reports(months)}")
    console.print(
        f'\n  curl -H "Authorization: Bearer {api_key}" "{server}/api/orders?per_page=3&refund=true"',
        markup=False,
        style="dim",
    )


def send_older_months(server: str, api_key: str, summary: str) -> None:
    """Send the months of a sales summary that the agent would only send in later cycles: all but
    the newest two.
    """
    rows = list(csv.DictReader(io.StringIO(summary)))
    headers = {"Authorization": f"Bearer {api_key}"}
    with httpx.Client(base_url=server, headers=headers, timeout=30) as http:
        for row in sorted(rows, key=lambda row: row["date_from"])[:-AGENT_MONTHS]:
            body: dict[str, object] = {name: row.pop(name) for name in ("date_from", "date_to")}
            report = row | {"order_count": int(row["order_count"])}
            http.post("/api/v1/sales_report", json=body | {"report": report}).raise_for_status()


def _orders(http: httpx.Client) -> tuple[dict[str, int], list[JsonObject]]:
    """Return the number of orders by status, and all orders."""
    orders: list[dict[str, object]] = []
    while True:
        place = len(orders) // PER_PAGE + 1
        page = _json(http, f"/api/orders?per_page={PER_PAGE}&page={place}&items=full")
        orders += page["orders"]
        if not page["orders"] or len(orders) >= page["total"]:
            return page["status_counts"], orders


def _json(http: httpx.Client, path: str) -> JsonObject:
    body: dict[str, object] = http.get(path).raise_for_status().json()
    return body


def finished(http: httpx.Client, upload_id: int) -> JsonObject:
    """Return an upload's report after the worker has finished the import, or after MOST_WAIT
    seconds.
    """
    ends = clock.monotonic() + MOST_WAIT
    while (report := _json(http, f"/api/v1/uploads/{upload_id}"))["state"] in (
        "queued",
        "processing",
    ):
        if clock.monotonic() > ends:
            break
        time.sleep(0.1)
    return report


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count} {name}"
        for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )


def _refunds(orders: list[JsonObject]) -> str:
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for order in orders:
        if order["refund_amt"] is not None:
            reason = f"{order['refund_type']}, {order['refund_reason']}"
            amounts[reason].append(Decimal(order["refund_amt"]))
    counted = (f"{len(found)} of {sum(found)} ({name})" for name, found in sorted(amounts.items()))
    return ", ".join(counted) or "none"


def _sales(orders: list[JsonObject]) -> str:
    month = f"{clock.now():%Y-%m}"
    mine = [order for order in orders if (order["order_date"] or "").startswith(month)]
    total = sum(
        (Decimal(order["total_amt"] or 0) - Decimal(order["refund_amt"] or 0) for order in mine),
        Decimal(),
    )
    return f"{total} USD from {len(mine)} orders this month, refunds taken off"


def _reports(months: JsonObject) -> str:
    found = sorted(report["month"] for report in months["reports"])
    return f"{len(found)} monthly reports, {found[0]} to {found[-1]}" if found else "no reports"
