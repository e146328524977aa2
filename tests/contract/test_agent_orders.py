"""Order files of the inbox go up: in the plan's windows, each content once, in parts that a kill
-9 does not lose, and without a person's address.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.contract.agent_fake_server import FakeServer, Fault
from tests.contract.agent_process import Agents, Ended
from tests.contract.agent_runs import drop, once, the_log

from cardsync_agent import clock

LIST = (
    "Order #,Buyer Name,Order Date,Status,Shipping Type,Product Amt,Shipping Amt,Total Amt,"
    "Buyer Paid,Carrier Information\n"
)
SHEET = (
    "Product Line,Product Name,Condition,Number,Set,Rarity,Quantity,Main Photo URL,"
    "Set Release Date,SkuId,Order Quantity\n"
)
SHIP = (
    "Order #,FirstName,LastName,Address1,Address2,City,State,PostalCode,Country,Order Date,"
    "Product Weight,"
    "Shipping Method,Item Count,Value Of Products,Shipping Fee Paid,Tracking #,Carrier\n"
)
REFUNDS = "order_number,total_amt,refund_type,refund_origin\nA-1,1.00,partial,marketplace\n"
FEEDBACK = "order_number,rating,comment\nA-1,5,fine\n"
STEPS = ["fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds", "fetch_feedback"]
DONE = ("success", None)


def today() -> date:
    """Asked anew: a suite may run past midnight."""
    return clock.now().date()


def orders(*ages: int, buyer: str = "Ann") -> str:
    days = [today() - timedelta(days=age) for age in ages]
    lines = [
        f'A-{n},{buyer},"{day:%A, %d %B %Y}",Shipped,Standard,1.00,1.31,2.31,True\n'
        for n, day in enumerate(days)
    ]
    return LIST + "".join(lines)


def sheet(*numbers: int) -> str:
    pairs = " | ".join(f"A-{n}:1" for n in numbers)
    return (
        f"{SHEET}Magic,Lotus,Near Mint,1,Alpha,R,1,,1/1/2025,77,{pairs}\n"
        "Orders Contained in Pull Sheet:,x\n"
    )


def shipment(street: str = "1 Elm St", weight: str = "0.21") -> str:
    day = f"{today():%m/%d/%Y}"
    return (
        f"{SHIP}A-1,Fay,Grimsditch,{street},Apt 2,Salem,OR,01234,US,{day},{weight},Expedited,3,1,"
        "1.31,TRK,\n"
    )


def put(folder: Path, **files: str) -> None:
    for name, content in files.items():
        drop(folder, content.encode(), f"{name}.csv")


@pytest.fixture
def shop(server: FakeServer, folder: Path) -> Path:
    """A folder with one order file of each kind, and a server that asks for a full sync."""
    server.kind = "full"
    put(folder, a=orders(1, 2), b=sheet(0, 1), c=shipment(), d=REFUNDS, e=FEEDBACK)
    return folder


def numbers(server: FakeServer, path: str = "orders") -> list[list[str]]:
    return [[row["order_number"] for row in rows] for rows in server.rows.get(path, [])]


def again(agents: Agents, server: FakeServer, folder: Path, **drops: str) -> Ended:
    """The next scheduled cycle, with what the seller has saved since; a new pricing export is
    always there.
    """
    put(folder, **drops)
    drop(
        folder,
        gzip.decompress(gzip.compress(server.prices)) + os.urandom(4).hex().encode(),
        "export.csv",
    )
    server.due = True
    server.rows.clear()
    return once(agents, server, folder)


# Files and their streams


def test_every_kind_of_file_is_sent_to_its_place(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    ended = once(agents, server, shop)
    status, steps = the_log(server)
    assert (ended.returncode, status) == (0, "partial")  # for want of a sales summary
    assert {name: steps[name] for name in STEPS} == dict.fromkeys(STEPS, DONE)
    assert [call.removeprefix("POST /api/v1/") for call in server.calls if "order" in call] == [
        *("orders", "order_items", "orders/shipping", "order_refunds", "order_feedbacks")
    ]
    [[first, _]] = server.rows["orders"]
    assert (first["buyer_name"], first["order_date"]) == (
        "Ann",
        f"{today() - timedelta(days=1):%m/%d/%Y}",
    )
    assert numbers(server, "order_items") == [["A-0", "A-1"]]
    assert server.rows["order_refunds"] == [
        [
            {
                "order_number": "A-1",
                "total_amt": "1.00",
                "refund_type": "partial",
                "refund_origin": "marketplace",
            }
        ]
    ]
    assert server.rows["order_feedbacks"] == [
        [{"order_number": "A-1", "rating": 5, "comment": "fine"}]
    ]
    assert [e["rows"] for e in ended.named("rows_sent")] == [2, 2, 1, 1, 1]
    assert [len(e["upload_ids"]) for e in ended.named("rows_sent")] == [1, 1, 1, 1, 0]


def test_a_kind_runs_its_own_steps_alone(agents: Agents, server: FakeServer, shop: Path) -> None:
    server.due = False
    assert once(agents, server, shop, "--request", "refunds").returncode == 0
    assert the_log(server) == ("success", {"fetch_orders": DONE, "fetch_refunds": DONE})
    assert set(server.rows) == {"orders", "order_refunds"}


def test_the_address_and_the_name_stay_here(agents: Agents, server: FakeServer, shop: Path) -> None:
    """Not in what is sent, said or kept; not even when lines are damaged."""
    put(
        shop,
        c=shipment()
        + shipment('5 Secret" Lane, Rear').partition("\n")[2]
        + shipment(weight="Grimsditch Lane").partition("\n")[2],
    )
    ended = once(agents, server, shop)
    assert numbers(server, "orders/shipping") == [["A-1"]]
    [unread] = ended.named("rows_unreadable")
    assert [problem["line"] for problem in unread["problems"]] == [3, 4]
    sent = b"".join(
        gzip.decompress(b) if b[:2] == b"\x1f\x8b" else b for b in server.row_bodies
    ).decode()
    kept = "".join(
        path.read_text(errors="replace") for path in (shop / ".cardsync-agent").iterdir()
    )
    said = json.dumps([ended.events, server.logs]) + ended.errors
    for words in ("Grimsditch", "Elm St", "Secret", "Apt 2", "Fay"):
        assert words not in sent + kept + said


def test_a_line_that_cannot_be_read_is_told_and_stops_nothing(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    put(shop, a=orders(1, 2) + "A-9,too short\n")
    ended = once(agents, server, shop, "--quiet")
    assert (
        ended.named("rows_unreadable")[0]["text"]
        == "a.csv: line 4: this row has 2 columns; 10 expected"
    )
    assert numbers(server) == [["A-0", "A-1"]]
    assert the_log(server)[1]["fetch_orders"] == DONE


def test_a_file_of_nothing_readable_fails_its_step_and_what_hangs_on_it_but_no_other(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    put(shop, a=LIST + "A-9,too short\n")
    assert once(agents, server, shop).returncode == 0
    status, steps = the_log(server)
    assert (status, steps["fetch_orders"]) == (
        "partial",
        ("failed", "no line of a.csv can be read: line 2: this row has 2 columns; 10 expected"),
    )
    assert {name: steps[name] for name in STEPS[1:]} == dict.fromkeys(
        STEPS[1:], ("skipped", "an earlier step failed")
    )
    assert steps["import_prices"] == DONE
    assert steps["fetch_sales_report"][0] == "skipped"


def test_without_an_inventory_the_orders_are_sent_all_the_same(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    (shop / "inbox" / "export.csv").unlink()
    once(agents, server, shop)
    status, steps = the_log(server)
    assert (status, steps["export_inventory"]) == ("partial", ("failed", "no export in inbox"))
    assert steps["import_prices"] == ("skipped", "an earlier step failed")
    assert {name: steps[name] for name in STEPS} == dict.fromkeys(STEPS, DONE)


def test_an_upload_that_the_server_refuses_fails_its_step(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    server.faults = [Fault("order_refunds", 422, code="invalid_payload")]
    once(agents, server, shop)
    _, steps = the_log(server)
    assert steps["fetch_refunds"] == ("failed", "invalid_payload: told to fail")
    assert steps["fetch_feedback"] == DONE


def test_with_a_file_of_every_kind_a_full_sync_is_a_success(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    put(shop, f=summary("2026-09"))
    ended = once(agents, server, shop)
    assert (ended.returncode, the_log(server)[0]) == (0, "success")
    assert the_log(server)[1]["refresh_account"] == (
        "skipped",
        "account details aren't available in folder mode",
    )


# Windows and repetition


@pytest.mark.parametrize(
    ("first_sync", "sent"), [(True, ["A-0", "A-1", "A-2"]), (False, ["A-0", "A-1"])]
)
def test_the_window_is_the_plans(
    agents: Agents, server: FakeServer, shop: Path, first_sync: bool, sent: list[str]
) -> None:
    put(shop, a=orders(0, 90, 91, (today().year - 2019) * 366 + 1))
    server.first_sync = first_sync
    ended = once(agents, server, shop)
    assert numbers(server) == [sent]
    assert ended.named("rows_sent")[0]["older"] == 4 - len(sent)


@pytest.mark.night
def test_the_same_content_is_not_sent_again_unless_asked_for(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    once(agents, server, shop)
    again(agents, server, shop)
    *_, log = server.cycles().values()
    assert server.rows == {}
    errors = {step["name"]: (step["status"], step["error"]) for step in log["steps"]}
    assert errors["fetch_orders"] == (
        "skipped",
        "the inbox has no new order list (a.csv was uploaded before)",
    )
    assert once(agents, server, shop, "--request", "orders").returncode == 0
    assert set(server.rows) == {"orders", "order_items", "orders/shipping"}


@pytest.mark.night
def test_after_new_orders_what_hangs_on_them_comes_again(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    """The server skips items of orders that it has not heard of, and the pull sheet may have come
    first.
    """
    put(shop, b=sheet(0, 1, 2))
    once(agents, server, shop)
    again(agents, server, shop, a=orders(1, 2, 3))
    assert numbers(server) == [["A-0", "A-1", "A-2"]]
    assert numbers(server, "order_items") == [["A-0", "A-1", "A-2"]]
    assert "order_feedbacks" in server.rows
    again(agents, server, shop, d=REFUNDS.replace("1.00", "2.00"))
    assert set(server.rows) == {"order_refunds"}


@pytest.mark.night
def test_a_file_that_comes_late_in_a_first_sync_brings_no_other_along(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    server.first_sync = True
    (shop / "inbox" / "e.csv").unlink()
    once(agents, server, shop)
    again(agents, server, shop)
    assert server.rows == {}
    again(agents, server, shop, e=FEEDBACK)
    assert set(server.rows) == {"order_feedbacks"}


@pytest.mark.night
def test_the_whole_history_is_sent_when_it_is_asked_for(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    put(shop, a=orders(1, 200))
    once(agents, server, shop)
    assert numbers(server) == [["A-0"]]
    server.first_sync = True
    again(agents, server, shop)
    assert numbers(server) == [["A-0", "A-1"]]


def test_the_newest_list_counts_and_every_pull_sheet(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    """A list is a whole; a pull sheet holds only what was open when it was printed."""
    put(shop, z=orders(5, 6, 7), y=sheet(2))
    for name, age in (("a", 100), ("z", 10), ("b", 100), ("y", 10)):
        os.utime(shop / "inbox" / f"{name}.csv", (1_700_000_000 - age,) * 2)
    once(agents, server, shop)
    assert numbers(server) == [["A-0", "A-1", "A-2"]]
    assert numbers(server, "order_items") == [["A-0", "A-1"], ["A-2"]]


# Interruptions


def many(count: int) -> str:
    """Rows so long that an upload holds some 2,400 of them."""
    return LIST + "".join(f"A-{n},{'o' * 3900},{today():%m/%d/%Y},,,,,,,\n" for n in range(count))


@pytest.mark.first(1)
@pytest.mark.day
@pytest.mark.parametrize("side", [pytest.param("before", marks=pytest.mark.night), "after"])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_kill_between_parts_loses_nothing(
    agents: Agents, server: FakeServer, shop: Path, part: int, side: str
) -> None:
    put(shop, a=many(6_000))
    server.due, server.requested, server.kind = False, True, "orders"
    whole = once(agents, server, shop)
    sends = [n for n, point in enumerate(whole.points, 1) if point == "POST /api/v1/orders"]
    assert len(sends) == 3
    server.rows.clear()
    server.logs.clear()
    server.requested = True
    assert once(agents, server, shop, kill_at=sends[part], side=side).returncode == -signal.SIGKILL
    assert once(agents, server, shop).returncode == 0
    sent = [number for rows in numbers(server) for number in rows]
    assert set(sent) == {f"A-{n}" for n in range(6_000)}
    assert len(numbers(server)) == 3 + (
        side == "after"
    )  # the one whose answer was lost comes twice, and no other
    assert the_log(server) == ("success", dict.fromkeys(STEPS[:3], DONE))


@pytest.mark.night
@pytest.mark.day
def test_killed_at_any_point_the_orders_arrive(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    server.due, server.requested, server.kind = False, True, "orders"
    points = len(once(agents, server, shop).points)
    for point in range(1, points + 1):
        for path in (shop / ".cardsync-agent").iterdir():
            path.unlink()
        server.rows.clear()
        server.logs.clear()
        server.holder, server.requested, server.kind = None, True, "orders"
        assert once(agents, server, shop, kill_at=point, side="after").returncode == -signal.SIGKILL
        once(agents, server, shop)
        assert {
            path: {n for rows in numbers(server, path) for n in rows} for path in server.rows
        } == {
            "orders": {"A-0", "A-1"},
            "order_items": {"A-0", "A-1"},
            "orders/shipping": {"A-1"},
        }, point
        assert the_log(server) == ("success", dict.fromkeys(STEPS[:3], DONE)), point


@pytest.mark.first(1)
@pytest.mark.parametrize("status", [0, 503])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "path", ["/orders", "/order_items", "/order_feedbacks", "/sales_report/gaps"]
)
def test_any_call_may_fail(
    agents: Agents, server: FakeServer, shop: Path, path: str, after: bool, status: int
) -> None:
    put(shop, f="date_from,net_sales\n2026-10-01,1\n")
    server.faults = [Fault(path, status, times=2, after=after)]
    assert once(agents, server, shop).returncode == 0
    assert dict.fromkeys([*STEPS, "fetch_sales_report"], DONE).items() <= the_log(server)[1].items()


@pytest.mark.night
def test_a_cancel_between_parts_ends_it(agents: Agents, server: FakeServer, shop: Path) -> None:
    put(shop, a=many(6_000))
    server.due, server.requested, server.kind = False, True, "orders"
    server.cancel_after = "/orders"
    assert once(agents, server, shop).returncode == 1
    assert the_log(server) == (
        "failed",
        {
            "fetch_orders": ("failed", "cancelled by the seller"),
            "fetch_order_items": ("skipped", "cancelled by the seller"),
            "fetch_shipping": ("skipped", "cancelled by the seller"),
        },
    )
    assert len(server.rows["orders"]) == 1


def test_a_cancel_while_the_server_works_at_the_rows_ends_the_waiting(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    put(folder, a=orders(1))
    server.due, server.requested, server.kind = False, True, "orders"
    server.row_states = ["processing"] * 50
    server.cancel_after = "uploads/1001"
    assert once(agents, server, folder, "--interval", "0").returncode == 1
    assert the_log(server)[1]["fetch_orders"] == ("failed", "cancelled by the seller")


def test_rows_that_nobody_cancels_are_waited_for(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    server.due, server.requested, server.kind = False, True, "orders"
    server.row_states = ["processing"] * 5
    assert once(agents, server, shop, "--interval", "0").returncode == 0
    assert the_log(server)[1]["fetch_orders"] == DONE
    waiting = server.calls[: server.calls.index("POST /api/v1/order_items")]
    assert waiting.count("GET /api/v1/uploads/1001") == 6


# Sales reports


def summary(*months: str) -> str:
    return "date_from,gross_sales,order_count,net_sales\n" + "".join(
        f"{m}-01,$10.50,3,9\n" for m in months
    )


def test_sales_reports_come_two_a_cycle_oldest_first(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.gaps = [f"2026-{month:02}-01" for month in range(5, 11)]
    put(folder, old=summary("2026-07", "2026-06"), new=summary("2026-09", "2026-08", "2026-01"))
    server.due = False
    for months in (["2026-06", "2026-07"], ["2026-08", "2026-09"]):
        server.sales.clear()
        assert once(agents, server, folder, "--request", "sales").returncode == 0
        assert [body["date_from"][:7] for body in server.sales] == months
    assert server.sales[1] == {
        "date_from": "2026-09-01",
        "date_to": "2026-09-30",
        "report": {"gross_sales": "10.50", "order_count": 3, "net_sales": "9"},
    }
    assert once(agents, server, folder, "--request", "sales").returncode == 1
    *_, log = server.cycles().values()
    assert [(step["status"], step["error"]) for step in log["steps"]] == [
        (
            "skipped",
            "the inbox has no sales summary of the 2 months that are missing since 2026-05-01",
        )
    ]


def test_rows_that_the_server_could_not_apply_are_not_delivered(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    put(folder, a=orders(1))
    server.row_states = ["processing", "failed"]
    assert once(agents, server, folder, "--request", "orders").returncode == 1
    *_, log = server.cycles().values()
    assert log["steps"][0]["status"] == "failed"
    assert "could not apply the orders of a.csv: processing_failed" in log["steps"][0]["error"]
    # The next cycle sends them again, and is done.
    sent = len(server.rows["orders"])
    assert once(agents, server, folder, "--request", "orders").returncode == 0
    assert len(server.rows["orders"]) == sent + 1


def test_the_gaps_are_asked_for_when_the_orders_are_written(
    agents: Agents, server: FakeServer, shop: Path
) -> None:
    put(shop, f=summary("2026-09"))
    server.row_states = ["queued", "processing", "done"]
    assert once(agents, server, shop).returncode == 0
    asked = [call for call in server.calls if "sales_report/gaps" in call or "uploads/1001" in call]
    assert asked == ["GET /api/v1/uploads/1001"] * 3 + ["GET /api/v1/sales_report/gaps"]


def test_with_no_month_missing_the_sales_are_done(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    put(folder, f=summary("2026-09"))
    server.due = False
    assert once(agents, server, folder, "--request", "sales").returncode == 0
    assert (the_log(server), server.sales) == (("success", {"fetch_sales_report": DONE}), [])


@pytest.mark.night
@pytest.mark.day
def test_a_kill_does_not_add_a_third_month(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    months = [f"2026-{month:02}-01" for month in range(5, 11)]
    put(folder, f=summary(*(month[:7] for month in months)))
    server.due = False
    server.gaps = list(months)
    points = once(agents, server, folder, "--request", "sales").points
    for point in range(points.index("POST /api/v1/sync/request") + 2, len(points) + 1):
        server.gaps, server.holder = list(months), None
        server.sales.clear()
        once(agents, server, folder, "--request", "sales", kill_at=point, side="after")
        once(agents, server, folder)
        assert {body["date_from"] for body in server.sales} == set(months[:2]), points[point - 1]
