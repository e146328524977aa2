"""docs/moving.md lists what an archive leaves out, and no new table or secret enters it unseen."""

from __future__ import annotations

import re
from pathlib import Path

from cardsync.operations.moving import archive_tables
from cardsync.operations.moving.archive_tables import Holds
from cardsync.tables import seller_tables

PAGE = Path("docs/moving.md")
# Columns that are named like secrets and open nothing.
NO_SECRETS = {
    "agent_plan.body_sha256",
    "card.identity_hash",
    "card.values_hash",
    "collection.sha256",
    "lot_file.sha256",
    "order_item.items_hash",
    "orders.items_hash",
    "pull_session_order.items_hash",
    "quick_add.file_sha256",
    "repricing_event.file_sha256",
    "webhook.former_until",
}


def test_each_table_is_in_the_archive_or_left_out_with_a_reason() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.M)
    assert dict(rows) == archive_tables.LEFT_OUT
    names = {table.name for table in seller_tables()}
    assert names >= set(archive_tables.LEFT_OUT)
    parts = archive_tables.parts(seller_tables(), Holds.ACCESS)
    assert {part.name for part in parts} == names - set(archive_tables.LEFT_OUT)


def test_what_is_emptied_or_changed_is_there() -> None:
    columns = {table.name: set(table.columns.keys()) for table in seller_tables()}
    for said in (archive_tables.EMPTIED, archive_tables.ARRIVES):
        for table, values in said.items():
            assert set(values) <= columns[table]
    assert set(archive_tables.COUNTED_ANEW) <= set(columns)


def test_an_archive_of_data_alone_holds_no_secret() -> None:
    held = {
        f"{part.name}.{column.name}"
        for part in archive_tables.parts(seller_tables(), Holds.DATA)
        for column in part.columns
        if re.search("hash|secret|token|sha256|credential_id|public_key", column.name)
        and not column.value.startswith("NULL")
        and part.which != "false"
    }
    assert held - NO_SECRETS == set()


def test_an_archive_without_secrets_holds_hashes_of_passwords_and_keys_alone() -> None:
    held = {
        f"{part.name}.{column.name}"
        for part in archive_tables.parts(seller_tables(), Holds.ACCESS)
        for column in part.columns
        if re.search("hash|secret|token|sha256", column.name)
        and not column.value.startswith("NULL")
    }
    assert held - NO_SECRETS == {"member.password_hash", "api_key.key_hash"}
