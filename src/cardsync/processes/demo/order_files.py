"""Shows in the terminal what happened to the demo's orders, from the server's answers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import httpx
from rich.console import Console

from cardsync import clock

MOST_WAIT = 60.0
SHIPPING = {"pwe": "in a plain envelope", "tracked": "tracked", "expedited": "expedited"}


def show_sent(console: Console, event: dict[str, Any]) -> None:
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
        case {"event": "sales_report_sent", "text": text}:
            console.print(f"[green]✓[/] {text}")


def show(console: Console, server: str, api_key: str, upload_ids: Iterable[int]) -> None:
    """Show what happened to the orders; nothing if there are none."""
    with httpx.Client(
        base_url=server,
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=30,
    ) as http:
        skipped = sum(finished(http, upload_id)["skipped"] for upload_id in upload_ids)
        page = _json(http, "/api/orders?per_page=200&items=full")
        months = _json(http, "/api/v1/sales_report")
    orders = page["orders"]
    if not orders:
        return
    console.rule(f"[bold]what became of {page['total']} orders", align="left")
    items = sum(order["items_total_count"] for order in orders)
    console.print(f"  items     {items} lines belong to their orders, {skipped} found none")
    console.print(f"  status    {_counts(page['status_counts'])}")
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


def _json(http: httpx.Client, path: str) -> dict[str, Any]:
    body: dict[str, Any] = http.get(path).raise_for_status().json()
    return body


def finished(http: httpx.Client, upload_id: int) -> dict[str, Any]:
    """An upload's report once it is worked off: accepting is at once, writing is the worker's."""
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


def _refunds(orders: list[dict[str, Any]]) -> str:
    refunded = [order for order in orders if order["refund_amt"] is not None]
    counted = ", ".join(
        f"{order['refund_amt']} ({order['refund_type']}, {order['refund_reason']})"
        for order in refunded
    )
    return counted or "none"


def _sales(orders: list[dict[str, Any]]) -> str:
    month = f"{clock.now():%Y-%m}"
    mine = [order for order in orders if (order["order_date"] or "").startswith(month)]
    total = sum(
        (Decimal(order["total_amt"] or 0) - Decimal(order["refund_amt"] or 0) for order in mine),
        Decimal(),
    )
    return f"{total} USD from {len(mine)} orders this month, refunds taken off"


def _reports(months: dict[str, Any]) -> str:
    found = [report["month"] for report in months["reports"]]
    return f"reports of {', '.join(sorted(found))}" if found else "no monthly report"
