"""The steps that a cycle runs: the registry's table, capabilities as agents write them, and what
must hold for any plan.
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.agents.sync.planner import (
    HISTORY_STEPS,
    PRICING_CHAIN,
    STEPS,
    PlanFacts,
    Skipped,
    make_plan,
    own_steps,
    read_capabilities,
    steps_of,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ALL = frozenset((name, 1) for name in STEPS)
CHAIN = (
    "export_inventory",
    "upload_inventory",
    "await_repricing",
    "download_price_updates",
    "import_prices",
)
ORDERS = ("fetch_orders", "fetch_order_items", "fetch_shipping")


def a_plan(kind="full", *, manual=False, read_only=False, advertised=ALL, **ages):
    """A plan where the named steps last succeeded so many seconds ago."""
    successes = {name: NOW - age * SECOND for name, age in ages.items()}
    return make_plan(PlanFacts(NOW, kind, manual, read_only, frozenset(advertised), successes))


def names(plan):
    return [step.name for step in plan.skipped]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("full", tuple(STEPS)),
        ("pricing", CHAIN),
        ("orders", ORDERS),
        ("refunds", ("fetch_orders", "fetch_refunds")),
        ("feedback", ("fetch_orders", "fetch_feedback")),
        ("sales", ("fetch_sales_report",)),
        ("account", ("refresh_account",)),
    ],
)
def test_the_steps_of_each_kind(kind, expected):
    assert steps_of(kind, read_only=False) == expected
    assert a_plan(kind, manual=True).steps == list(expected)
    assert set(steps_of(kind, read_only=True)) == set(expected) - {"import_prices"}


def test_the_registry_is_the_specifications():
    assert {
        name: (step.needs, step.version, step.freshness_seconds) for name, step in STEPS.items()
    } == {
        "export_inventory": ((), 1, 900),
        "upload_inventory": (("export_inventory",), 1, 900),
        "await_repricing": (("upload_inventory",), 1, 900),
        "download_price_updates": (("await_repricing",), 1, 900),
        "import_prices": (("download_price_updates",), 1, 900),
        "fetch_orders": ((), 1, 600),
        "fetch_order_items": (("fetch_orders",), 1, 600),
        "fetch_shipping": (("fetch_orders",), 1, 3600),
        "fetch_refunds": (("fetch_orders",), 1, 3600),
        "fetch_feedback": (("fetch_orders",), 1, 21_600),
        "fetch_sales_report": ((), 1, 86_400),
        "refresh_account": ((), 1, 86_400),
    }
    assert PRICING_CHAIN == CHAIN
    assert set(HISTORY_STEPS) == {*ORDERS, "fetch_refunds", "fetch_feedback"}


@pytest.mark.parametrize("name", [name for name in STEPS if name not in CHAIN])
def test_a_step_is_fresh_until_its_window_is_over(name):
    window = STEPS[name].freshness_seconds
    plan = a_plan(**{name: window - 1})
    assert plan.skipped == [Skipped(name, "fresh", NOW - (window - 1) * SECOND, window)]
    assert plan.steps == [step for step in STEPS if step != name]
    assert a_plan(**{name: window}).skipped == []


def test_the_pricing_chain_is_fresh_as_a_whole():
    assert names(a_plan(**dict.fromkeys(CHAIN, 60))) == list(CHAIN)
    for name in CHAIN:
        older = dict.fromkeys(CHAIN, 60) | {name: 900}
        assert a_plan(**older).steps[:5] == list(CHAIN)
        assert a_plan(**{name: 60}).skipped == []


def test_without_imports_the_chain_is_fresh_without_them():
    ages = dict.fromkeys(CHAIN[:-1], 60)
    assert names(a_plan(read_only=True, **ages)) == list(CHAIN[:-1])
    assert names(a_plan(**ages)) == []


@pytest.mark.parametrize("kind", ["refunds", "feedback"])
def test_of_a_request_only_what_it_needs_may_be_fresh(kind):
    plan = a_plan(kind, manual=True, **dict.fromkeys(STEPS, 5))
    assert (plan.steps, names(plan)) == ([f"fetch_{kind}"], ["fetch_orders"])


@pytest.mark.parametrize("kind", ["full", "pricing", "orders", "sales", "account"])
def test_of_a_request_with_steps_of_its_own_none_is_fresh(kind):
    plan = a_plan(kind, manual=True, **dict.fromkeys(STEPS, 5))
    assert (tuple(plan.steps), plan.skipped) == (steps_of(kind, read_only=False), [])


def test_everything_fresh_is_an_empty_plan_and_no_refusal():
    plan = a_plan(advertised=(), **dict.fromkeys(STEPS, 5))
    assert (plan.steps, len(plan.skipped), plan.error) == ([], len(STEPS), None)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_the_agent_does_not_know_refuses_the_plan(name):
    plan = a_plan(advertised=ALL - {(name, 1)})
    assert (plan.kind, plan.steps, plan.skipped, plan.error) == (
        "full",
        [],
        [],
        f"capability_mismatch: {name}@1",
    )


def test_another_version_of_a_step_is_another_step():
    lacking = ALL - {("fetch_orders", 1)}
    assert (
        a_plan("orders", advertised=lacking | {("fetch_orders", 2)}).error
        == "capability_mismatch: fetch_orders@1"
    )
    assert a_plan("orders", advertised=ALL | {("fetch_orders", 2)}).error is None


def test_the_first_missing_step_is_named():
    assert (
        a_plan(advertised={("fetch_orders", 1)}).error == "capability_mismatch: export_inventory@1"
    )


def test_what_need_not_run_need_not_be_advertised():
    assert a_plan(read_only=True, advertised=ALL - {("import_prices", 1)}).error is None
    assert a_plan("refunds", advertised=[("fetch_refunds", 1)], fetch_orders=5).steps == [
        "fetch_refunds"
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, None),
        ([], None),
        ([""], None),
        (["  ", ""], None),
        (["fetch_orders@1"], {("fetch_orders", 1)}),
        (["fetch_orders"], {("fetch_orders", 1)}),
        (["fetch_orders@2, import_prices ,refresh_account@01"],
         {("fetch_orders", 2), ("import_prices", 1), ("refresh_account", 1)}),
        (["fetch_orders@1", "fetch_orders@2"], {("fetch_orders", 1), ("fetch_orders", 2)}),
        (["fetch_orders,,@1,@,", "make_coffee@1"], {("fetch_orders", 1)}),
        (["make_coffee"], set()),
        (["fetch_orders@", "import_prices@x", "refresh_account@-1", "fetch_refunds@1.0",
          "fetch_feedback@1@1"], set()),
        (["Fetch_Orders", "fetch_orders@٣"], set()),
        (["refresh_account".ljust(2000, ",")], {("refresh_account", 1)}),
        (["refresh_account".ljust(2001, ",")], None),
        (["refresh_account".ljust(1000, ","), "x" * 1001], None),
        (["refresh_account," + "ü" * 993], None),
    ],
)  # fmt: skip
def test_capabilities_are_read_as_agents_write_them(values, expected):
    assert read_capabilities(values) == expected


@given(st.lists(st.text()))
def test_any_capabilities_name_only_steps_that_we_know(values):
    assert {name for name, _ in read_capabilities(values) or ()} <= STEPS.keys()


ages = st.dictionaries(st.sampled_from(list(STEPS)), st.integers(-10, 100_000))
any_plan = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS), "manual": st.booleans(), "read_only": st.booleans()},
    optional={"advertised": st.frozensets(st.sampled_from(sorted(ALL)))},
)


@given(any_plan, ages)
def test_a_plan_is_whole_or_refused(asked, successes):
    plan = a_plan(**asked, **successes)
    wanted = steps_of(asked["kind"], read_only=asked["read_only"])
    if plan.error is not None:
        assert (plan.steps, plan.skipped) == ([], [])
        return
    assert sorted([*plan.steps, *names(plan)]) == sorted(wanted)
    assert {(name, 1) for name in plan.steps} <= asked.get("advertised", ALL)


@given(any_plan, ages)
def test_every_step_comes_after_what_it_needs(asked, successes):
    plan = a_plan(**asked, **successes)
    for at, name in enumerate(plan.steps):
        assert all(need in plan.steps[:at] or need in names(plan) for need in STEPS[name].needs)


@given(any_plan, ages)
def test_nothing_is_skipped_unless_it_is_fresh(asked, successes):
    for step in a_plan(**asked, **successes).skipped:
        assert successes[step.name] < STEPS[step.name].freshness_seconds == step.freshness_seconds
        assert (step.reason, step.last_succeeded_at) == (
            "fresh",
            NOW - successes[step.name] * SECOND,
        )


@given(any_plan, ages)
def test_a_request_never_skips_its_own_steps(asked, successes):
    plan = a_plan(**(asked | {"manual": True}), **successes)
    assert not set(own_steps(asked["kind"])) & set(names(plan))


@given(any_plan, ages, st.sampled_from(list(STEPS)))
def test_a_newer_success_never_makes_more_work(asked, successes, name):
    before = a_plan(**asked, **successes)
    after = a_plan(**asked, **(successes | {name: min(0, successes.get(name, 0))}))
    if before.error is None:
        assert set(after.steps) <= set(before.steps)


@given(any_plan, ages, st.sampled_from(sorted(ALL)))
def test_more_capabilities_never_refuse_more(asked, successes, more):
    before = a_plan(**asked, **successes)
    after = a_plan(**(asked | {"advertised": asked.get("advertised", ALL) | {more}}), **successes)
    assert before.error is not None or after == before
