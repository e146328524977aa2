"""A shop moves to another installation: it works there as it did, and its files are the same to the
byte.
"""

from __future__ import annotations

import io
import re
import zipfile

import httpx
import polars as pl

from builders import Seller
from cardsync.operations import put_away
from cardsync.operations.moving import archive_tables
from cardsync.platform.old_data.old_kinds import ACTIVITY
from cardsync.tables import seller_tables
from every_table import fill

FILES = (
    "/api/v1/export/price-updates",
    "/api/pricing/updates.csv",
    "/api/cards/export.csv",
    "/api/orders/export.csv",
    "/api/customers/export.csv",
    "/api/lists/export.csv",
    "/api/sales/summary.csv",
    "/api/pricing/runs/export.csv",
)


async def files_of(seller: Seller) -> dict[str, bytes]:
    answers: dict[str, httpx.Response] = {path: await seller.get(path) for path in FILES}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {path: answer.content for path, answer in answers.items()}


async def test_a_shop_that_moved_has_the_same_files(shop, moved):
    before = await files_of(shop)
    there = await moved(shop)
    assert there.id != shop.id
    assert await files_of(there) == before
    assert b"1.25" in before["/api/cards/export.csv"]


def tables_of(path) -> dict[str, pl.DataFrame]:
    with zipfile.ZipFile(path) as file:
        return {
            name.removeprefix("tables/").removesuffix(".parquet"): pl.read_parquet(
                io.BytesIO(file.read(name))
            )
            for name in file.namelist()
            if name.startswith("tables/")
        }


def said(rows: pl.DataFrame) -> list[dict[str, object]]:
    """The rows without the numbers of those that they name, which are counted anew."""
    texts = pl.col(pl.String).str.replace_all(r"(\bmember |\bkey |\btoken |/u)\d+", "$1")
    return rows.with_columns(texts).rows(named=True)


# What is another installation's: ids that are counted over its shops, and what a move changes.
CHANGED = {
    "*": {"member_id", "contributed_by", "product_id", "was_product_id"},
    "access_token": {"id", "revoked_at"},
    "account": set(archive_tables.ARRIVES["account"]),
    "api_key": {"id"},
    "member": {"id"},
    "oauth_grant": {"revoked_at"},
    "passkey": {"id"},
    "product": {"id"},
    "pull_link": {"revoked_at"},
    "seller": {"id"},
    "webhook": {"off_at", "off_why"},
    "work_due": {"due_at", "request_id", "traceparent"},
}


async def test_every_row_of_every_table_arrives(
    shop, service, elsewhere, cardsync, owner_url, tmp_path
):
    """A row is put into each table that the shop's own life leaves empty: no other test has one of
    each.
    """
    fill(owner_url, shop.id, shop.email)
    first, again = tmp_path / "first.zip", tmp_path / "again.zip"
    made = await cardsync(service, "export", shop.id, first)
    assert made.exit_code == 0, made.output
    arrived = await cardsync(elsewhere, "import", first)
    assert arrived.exit_code == 0, arrived.output
    there = int(arrived.output.split("is seller ")[1].split()[0])
    made = await cardsync(elsewhere, "export", there, again)
    assert made.exit_code == 0, made.output
    before, after = tables_of(first), tables_of(again)
    assert set(before) == set(after)
    named = {table.name for table in seller_tables()}
    assert set(before) == named - set(archive_tables.LEFT_OUT) | {"product"}
    assert not [name for name, rows in before.items() if rows.is_empty()]
    for name in archive_tables.NOT_TAKEN:
        assert after[name].is_empty()
    for name, rows in before.items():
        if name in archive_tables.NOT_TAKEN:
            continue
        ignored = CHANGED["*"] | CHANGED.get(name, set())
        kept = [column for column in rows.columns if column not in ignored]
        was, now = rows.select(kept), after[name].select(kept)
        if name == "product":
            was, now = was.sort("identity"), now.sort("identity")
        if name in ("activity", "work_due"):
            now = now.filter(pl.col(kept[0]).is_in(was[kept[0]].implode()))
        assert said(was) == said(now), name


async def test_old_rows_move_with_the_shop_and_name_its_people_there(shop, moved):
    old = "UPDATE activity SET created_at = now() - interval '800 days' WHERE seller_id = :id"
    await shop.service.sql(shop.id, old, id=shop.id)
    async for _ in put_away.slabs(shop.service.work, shop.id, ACTIVITY):
        pass
    path = "/api/v1/agent/activity/export.csv"
    before = (await shop.get(path)).text.splitlines()
    there = await moved(shop)
    after = (await there.get(path)).text.splitlines()
    # The arrival is told, too.
    assert len(after) == len(before) + 1 > 2
    known = "SELECT id FROM member WHERE seller_id = :id"
    members = {row["id"] for row in await there.service.sql(there.id, known, id=there.id)}
    named = {int(one) for one in re.findall(r"\bmember (\d+)", "\n".join(after[1:]))}
    assert named
    assert named <= members
