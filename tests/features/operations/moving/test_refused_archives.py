"""An archive that is not as it was written, that is too new, or whose shop is here already, changes
nothing.
"""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from builders import SellerBuilder
from cardsync.operations.moving import archive_file
from cardsync.operations.moving.archive_file import Archive
from cardsync.platform.errors import CommandError


@pytest.fixture
async def archive(a_seller, service, cardsync, tmp_path):
    seller = await a_seller()
    path = tmp_path / "shop.zip"
    made = await cardsync(service, "export", seller.id, path)
    assert made.exit_code == 0, made.output
    assert path.stat().st_mode & 0o077 == 0
    return seller, path


def rewritten(path, **changed):
    """The same archive with another manifest, and signed again."""
    other = path.with_name("rewritten.zip")
    with archive_file.opened(path) as old, archive_file.written(other) as new:
        for name, line in old.manifest.tables.items():
            entry = archive_file.table_entry(name)
            new.add(entry, old.chunks(entry), line.rows)
        new.end(msgspec.structs.replace(old.manifest, **changed))
    return other


async def refused(cardsync, service, *arguments) -> str:
    done = await cardsync(service, *arguments)
    assert done.exit_code == 1, done.output
    [line] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert "Traceback" not in done.output
    return line


async def sellers_of(service):
    return await service.sql(0, "SELECT id, email FROM seller ORDER BY id")


async def objects_of(service):
    kinds = ("accepted", "receipts", "debug", "pictures")
    return [key for kind in kinds for key in await service.objects(kind)]


async def test_a_file_that_was_cut_off_or_changed_is_refused(
    archive, elsewhere, cardsync, tmp_path
):
    _, path = archive
    whole = path.read_bytes()
    broken = tmp_path / "broken.zip"
    chance = random.Random(75)
    lengths = [0, 1, 63, 64, 65, len(whole) // 2, len(whole) - 65, len(whole) - 1]
    for length in lengths:
        broken.write_bytes(whole[:length])
        with pytest.raises(CommandError), archive_file.opened(broken):
            pass
    for _ in range(200):
        place = chance.randrange(len(whole))
        broken.write_bytes(
            whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :]
        )
        with pytest.raises(CommandError), archive_file.opened(broken):
            pass
    said = await refused(cardsync, elsewhere, "import", broken)
    assert "copy it again" in said
    with archive_file.opened(path) as good:
        assert isinstance(good, Archive)


async def test_newer_archives_are_refused(archive, elsewhere, cardsync):
    _, path = archive
    before = await sellers_of(elsewhere)
    newer = rewritten(path, revision="9999", program="99.0")
    said = await refused(cardsync, elsewhere, "import", newer)
    assert "cardsync 99.0, which is newer" in said
    assert said == await refused(cardsync, elsewhere, "import", newer, "--dry-run")
    assert "format 2" in await refused(cardsync, elsewhere, "import", rewritten(path, format=2))
    assert await sellers_of(elsewhere) == before


async def test_a_shop_that_lacks_rows_is_refused_and_leaves_nothing(archive, elsewhere, cardsync):
    _, path = archive
    before = await sellers_of(elsewhere), await objects_of(elsewhere)
    with archive_file.opened(path) as old:
        tables = dict(old.manifest.tables)
    # The rule comes after most tables have been written.
    tables["pricing_rule"] = msgspec.structs.replace(tables["pricing_rule"], rows=5)
    said = await refused(cardsync, elsewhere, "import", rewritten(path, tables=tables))
    assert "pricing_rule has 1 rows instead of 5" in said
    assert (await sellers_of(elsewhere), await objects_of(elsewhere)) == before


async def test_a_shop_comes_in_once(archive, service, elsewhere, cardsync):
    seller, path = archive
    assert f"{seller.email} is already a member" in await refused(cardsync, service, "import", path)
    dry = await cardsync(elsewhere, "import", path, "--dry-run")
    assert (dry.exit_code, "can come in" in dry.output) == (0, True)
    assert seller.email not in str(await sellers_of(elsewhere))
    assert (await cardsync(elsewhere, "import", path)).exit_code == 0
    assert f"{seller.email} is already a member" in await refused(
        cardsync, elsewhere, "import", path
    )
    assert f"{seller.email} is already a member" in await refused(
        cardsync, elsewhere, "import", path, "--dry-run"
    )


async def test_a_person_who_is_a_member_here_keeps_the_shop_out(
    a_seller, service, elsewhere, cardsync, tmp_path
):
    there = await SellerBuilder(elsewhere)()
    seller = await a_seller()
    async with service.database.shared() as session:
        from cardsync.access import sealed

        await sealed.put_member(session, seller.id, there.email.upper(), "staff", "Bea")
    path = tmp_path / "shop.zip"
    assert (await cardsync(service, "export", seller.id, path)).exit_code == 0
    assert there.email in await refused(cardsync, elsewhere, "import", path)


async def test_of_two_imports_at_once_one_wins(
    shop, service, elsewhere, cardsync, a_process, tmp_path
):
    """Two processes: only they can be in the middle at the same time."""
    path = tmp_path / "shop.zip"
    assert (await cardsync(service, "export", shop.id, path)).exit_code == 0
    before = await objects_of(elsewhere)
    begun = [a_process(elsewhere, "import", path) for _ in range(2)]
    done = [await asyncio.to_thread(process.communicate) for process in begun]
    assert sorted(process.returncode for process in begun) == [0, 1], done
    [lost] = [said for process, (_, said) in zip(begun, done, strict=True) if process.returncode]
    assert "being imported now" in lost or "is already a member" in lost
    came = await elsewhere.sql(0, "SELECT id FROM seller WHERE email = :email", email=shop.email)
    assert len(came) == 1
    new = set(await objects_of(elsewhere)) - set(before)
    assert new
    assert {key.split("/")[1] for key in new} == {f"u{came[0]['id']}"}
    assert await elsewhere.sql(0, "SELECT FROM work_due WHERE stream = 'left_objects'") == []


async def test_an_unknown_seller_leaves_no_file(service, cardsync, tmp_path):
    path = tmp_path / "shop.zip"
    assert "there is no seller" in await refused(cardsync, service, "export", 999_999, path)
    assert list(tmp_path.iterdir()) == []
