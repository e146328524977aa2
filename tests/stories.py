"""The tests that CI also runs at each commit against a stock PostgreSQL server: what speaks of the
schema itself, and one story of each capability. `make nightly` runs all features and contracts
against it. One test of each capability runs against the installed wheel, too (`.ci/wheel`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SCHEMA = ("test_migrate", "test_released_schemas", "test_statements", "test_tenancy")
STORIES = {
    "access": "test_two_callers",
    "accounts": "test_deletion",
    "activity": "test_undo",
    "agentwork": "test_claims",
    "assistant": "test_protocol",
    "buying": "test_collections",
    "cards": "test_history",
    "catalog": "test_catalog_import",
    "contributions": "test_contributions",
    "credits": "test_skip_wait",
    "dashboard": "test_every_page",
    "imports": "test_inventory_cycle",
    "lists": "test_lists",
    "lots": "test_lots",
    "market": "test_whole_life",
    "moving": "test_move",
    "network": "test_network",
    "notices": "test_webhooks",
    "old_data": "test_old_rows",
    "operators": "test_operators",
    "orders": "test_order_sequences",
    "pictures": "test_pictures",
    "plans": "test_plans",
    "prices": "test_reprice",
    "printing": "test_sheets",
    "pulling": "test_pull_machine",
    "quick_add": "test_quick_add",
    "releases": "test_releases",
    "repairs": "test_repairs",
    "search": "test_search_agrees",
    "shelving": "test_shelves",
    "sync": "test_sync_machine",
    "telemetry": "test_traces",
    "today": "test_today",
    "web": "test_health",
    "work": "test_queue",
    "workflows": "test_workflow_packs",
}
# What `.ci/wheel` takes instead, where the story is a machine of many steps.
SHORT = {
    "orders": "test_one_order",
    "pulling": "test_pulled_orders",
    "search": "test_own_names",
    "sync": "test_sync_decision",
    "work": "test_put_back",
}
# With a bucket (`.ci/stock s3`) its server answers downloads and puts, and there is no folder to look
# into or to break.
OF_THE_FOLDER = {
    "test_a_heartbeat_tells_a_newer_version_with_everything_to_verify_it",
    "test_a_download_is_public_and_may_be_kept_for_ever",
    "test_head_tells_size_and_hash",
    "test_a_range",
    "test_a_range_that_is_none_gets_the_whole",
    "test_a_range_behind_the_end",
    "test_a_range_of_something_else_gets_the_whole",
    "test_unchanged_is_304",
    "test_bytes_that_are_gone_are_not_found_and_no_crash",
    "test_an_upload_that_breaks_off_is_not_accepted",
    "test_an_expired_url_takes_nothing",
    "test_a_used_url_takes_nothing_more",
    "test_a_step_of_tidying_that_fails_stops_no_later_one",
    "test_a_file_that_can_never_be_read_is_not_tried_for_ever",
    "test_an_upload_request_gives_a_url_a_key_and_when_it_expires",
    "test_a_url_takes_one_upload",
    "test_of_concurrent_puts_one_wins",
    "test_a_url_expires_after_ten_minutes",
    "test_a_changed_url_is_invalid_signature",
    "test_a_put_over_the_limit_is_payload_too_large_and_does_not_use_the_url_up",
    "test_accepted_bytes_no_longer_depend_on_the_object",
    "test_public_downloads_and_forged_upload_addresses_are_limited_by_address",
    "test_rows_of_a_killed_worker_are_written_into_another_file",
    "test_a_late_worker_touches_no_file_of_another",
    "test_a_bucket_that_is_away_ends_no_tidying",
    "test_rows_stay_where_a_file_does_not_read_back",
    "test_an_outage_of_the_store_costs_time_and_never_the_upload",
}


def files_of(stories: dict[str, str]) -> frozenset[Path]:
    """Return the file of each capability's story, whatever district its folder is in."""
    folders = {file.parent.name: file.parent for file in (TESTS / "features").rglob("test_*.py")}
    return frozenset(folders[room] / f"{name}.py" for room, name in stories.items())


FILES = files_of(STORIES) | {TESTS / "contract" / f"{name}.py" for name in SCHEMA}
SHORT_FILES = files_of(STORIES | SHORT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    with_bucket = "CARDSYNC_TEST_BUCKET_URL" in os.environ
    begun = set()
    for item in items:
        if item.path in FILES:
            item.add_marker(pytest.mark.story)
        if item.path in SHORT_FILES - begun and not item.get_closest_marker("soak"):
            begun.add(item.path)
            item.add_marker(pytest.mark.installed)
        if with_bucket and item.name.partition("[")[0] in OF_THE_FOLDER:
            item.add_marker(pytest.mark.skip("it is about the local store"))


def pytest_sessionfinish() -> None:
    """Raise where CARDSYNC_TEST_INSTALLED names a folder and a module of ours came from another."""
    if site := os.environ.get("CARDSYNC_TEST_INSTALLED"):
        ours = {
            name: Path(module.__file__)
            for name, module in sys.modules.items()
            if name.partition(".")[0] in ("cardsync", "cardsync_agent")
            and getattr(module, "__file__", None)
        }
        if strange := sorted(it for it, file in ours.items() if not file.is_relative_to(site)):
            raise pytest.UsageError(f"not from {site}: {len(strange)}, such as {strange[-1]}")
