"""Releases: the operator's commands, the offers to agents and desktop wrappers, the downloads, and
how soon every process knows.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from click.testing import CliRunner
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from obstore.store import S3Store
from sqlalchemy import event, text

from cardsync.agents.releases.known_releases import KnownReleases
from cardsync.asgi import create_app
from cardsync.cli import program
from cardsync.platform import clock
from cardsync.platform.database import notify as notices
from cardsync.platform.database.notify import Notices, notify
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.logs import setup_logging
from cardsync.platform.storage import CloudStore
from waiting import eventually

UPDATE_FIELDS = {
    "latest_version",
    "download_url",
    "signature",
    "sha256",
    "release",
    "release_signature",
}


class Operator:
    """`cardsync admin release …` against the tests' database, with one key."""

    def __init__(self, service, folder: Path) -> None:
        self.service, self.folder = service, folder
        self.key: dict = {}

    async def run(self, *arguments: object):
        # In a thread: a command runs an event loop of its own.
        command = ["admin", "release", *map(str, arguments)]
        done = await asyncio.to_thread(CliRunner().invoke, program, command)
        # The command wrote its log to a stream that is closed by now.
        setup_logging("warning", "json")
        return done

    async def json(self, *arguments: object) -> dict:
        done = await self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    async def refused(self, *arguments: object) -> str:
        done = await self.run(*arguments)
        assert done.exit_code == 1, done.output
        [line] = done.stderr.strip().splitlines()
        return line

    def artifact(self, content: bytes, name: str = "cardsync.whl") -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def arguments(
        self, version: str, *options: object, content: bytes | None = None, **given: object
    ) -> list:
        named = {
            "product": "agent",
            "platform": "linux/amd64",
            "key-file": self.key["key_file"],
        } | given
        file = self.artifact(content or f"agent {version}".encode())
        pairs = [
            part for name, value in named.items() for part in (f"--{name.replace('_', '-')}", value)
        ]
        return ["publish", file, "--version", version, *pairs, *options]

    async def publish(self, version: str, **given: object) -> dict:
        """Published, and known to the application."""
        made = await self.json(*self.arguments(version, **given))
        await self.service.app.state.releases.read()
        return made

    async def kill(self, version: str, *options: str, product: str = "agent") -> None:
        done = await self.run("kill", version, "--product", product, *options)
        assert done.exit_code == 0, done.output
        await self.service.app.state.releases.read()


@pytest.fixture
async def operator(service, in_the_environment, tmp_path):
    operator = Operator(service, tmp_path)
    operator.key = await operator.json("keygen", "--out", tmp_path / "keys")
    yield operator
    # Releases belong to everybody: other tests have none.
    async with service.database.shared() as session:
        await session.execute(text("DELETE FROM release"))
        await session.execute(text("DELETE FROM release_kill"))
    await service.app.state.releases.read()


@pytest.fixture
async def seller(a_seller):
    return await a_seller()


async def beat(seller, version: str | None = "1.0", platform: str | None = "linux/amd64") -> dict:
    answer = await seller.post("/api/v1/heartbeat", json={"version": version, "platform": platform})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def check(seller, **query: str) -> dict:
    answer = await seller.get("/api/v1/desktop/update", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def signed(key: str, signature: str, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(
            base64.b64decode(signature), data
        )
    except InvalidSignature:
        return False
    return True


# The commands


async def test_keygen_makes_a_pkcs8_key_that_only_its_owner_reads(operator):
    path = Path(operator.key["key_file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    public = load_pem_private_key(path.read_bytes(), None).public_key().public_bytes_raw()
    assert base64.b64decode(operator.key["public_key"]) == public


async def test_keygen_writes_over_no_key(operator):
    path = Path(operator.key["key_file"])
    before = path.read_bytes()
    assert "exists" in await operator.refused("keygen", "--out", path.parent)
    assert path.read_bytes() == before


async def test_what_is_published_is_listed_with_its_kills(operator):
    await operator.publish("1.1", channel="beta", percentage=25, min_from="1.0")
    await operator.kill("nightly", product="desktop")
    listed = await operator.json("list")
    [release] = listed["releases"]
    shown = ("product", "version", "platform", "channel", "percentage", "min_from")
    assert {name: release[name] for name in shown} == {
        "product": "agent", "version": "1.1", "platform": "linux/amd64", "channel": "beta",
        "percentage": 25, "min_from": "1.0",
    }  # fmt: skip
    assert [(kill["product"], kill["version"]) for kill in listed["kills"]] == [
        ("desktop", "nightly")
    ]
    told = (await operator.run("list")).output
    assert "1.1" in told
    assert "nightly" in told


@pytest.mark.night
async def test_publishing_again_moves_the_roll_out(operator, seller):
    first = await operator.publish("1.1", percentage=0)
    assert (await beat(seller))["update_available"] is False
    again = await operator.publish("1.1", percentage=100)
    assert (await beat(seller))["update_available"] is True
    assert (again["sha256"], again["download_url"]) == (first["sha256"], first["download_url"])
    assert len((await operator.json("list"))["releases"]) == 1


@pytest.mark.parametrize(
    "as_if", [{}, {"channel": "beta"}, {"platform": "Linux/x86_64"}, {"version": "1.1.0"}]
)
async def test_a_version_never_gets_other_bytes(operator, as_if):
    made = await operator.publish("1.1")
    other = {"version": "1.1", "content": b"different contents"} | as_if
    assert "different contents" in await operator.refused(*operator.arguments(**other))
    assert [row["sha256"] for row in (await operator.json("list"))["releases"]] == [made["sha256"]]
    # For another product, platform or version they are no different contents but the first.
    await operator.publish("1.1", content=b"different contents", product="desktop")
    await operator.publish("1.1", content=b"different contents", platform="darwin/arm64")
    await operator.publish("1.2", content=b"different contents")


async def test_the_same_bytes_go_to_another_channel(operator, seller):
    await operator.publish("1.1", product="desktop", channel="beta")
    assert (await check(seller, version="1.0"))["update_available"] is False
    await operator.publish("1.1", product="desktop")
    assert (await check(seller, version="1.0"))["update_available"] is True


async def test_two_who_publish_other_bytes_at_once_leave_one(operator, service):
    from cardsync.agents.releases import publish_releases, signing
    from cardsync.platform.storage import open_store

    key, store = signing.load_key(Path(operator.key["key_file"])), open_store(service.settings)
    draft = publish_releases.read_draft(
        "agent", "1.1", "linux/amd64", "stable", 100, None, 30, clock.now()
    )
    files = [operator.artifact(f"build {n}".encode(), f"{n}.whl") for n in range(4)]
    done = await asyncio.gather(
        *(publish_releases.publish(service.database, store, draft, file, key) for file in files),
        return_exceptions=True,
    )
    assert sum(not isinstance(one, Exception) for one in done) == 1
    assert len((await operator.json("list"))["releases"]) == 1


@pytest.mark.night
@pytest.mark.parametrize(
    ("version", "given", "words"),
    [
        ("one", {}, "not a PEP 440 version"),
        ("1.1", {"min_from": "old"}, "min-from 'old'"),
        ("1.1", {"platform": "../etc"}, "os/arch"),
        ("1.1", {"platform": "linux/../amd64"}, "os/arch"),
        ("1.1", {"channel": "a b"}, "one word"),
        ("1.1", {"key_file": __file__}, "not an unencrypted private key"),
    ],
)
async def test_a_mistake_is_one_sentence(operator, version, given, words):
    assert words in await operator.refused(*operator.arguments(version, **given))
    assert (await operator.json("list"))["releases"] == []


async def test_an_empty_file_is_no_release(operator):
    arguments = operator.arguments("1.1")
    operator.artifact(b"")
    assert "is empty" in await operator.refused(*arguments)


# Offers to agents and desktop wrappers


async def test_without_releases_only_the_two_flags_are_told(operator, seller):
    told = await beat(seller)
    assert (told["update_available"], told["force_update"]) == (False, False)
    assert not UPDATE_FIELDS & told.keys()
    assert await check(seller, version="1.0") == {"update_available": False, "force_update": False}


async def test_a_heartbeat_tells_a_newer_version_with_everything_to_verify_it(
    operator, seller, service
):
    content = os.urandom(5_000)
    await operator.publish("1.2.3", content=content, min_from="0.9", expires_days=30)
    told = await beat(seller)
    assert (told["update_available"], told["force_update"], told["latest_version"]) == (
        True,
        False,
        "1.2.3",
    )
    assert told["sha256"] == hashlib.sha256(content).hexdigest()
    assert signed(operator.key["public_key"], told["signature"], content)
    record = told["release"]
    assert set(record) == {"version", "platform", "sha256", "min_from", "expires_at"}
    assert (record["version"], record["platform"], record["min_from"]) == (
        "1.2.3",
        "linux/amd64",
        "0.9",
    )
    assert record["sha256"] == told["sha256"]
    left = datetime.fromisoformat(record["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=29, hours=23) < left < timedelta(days=30, seconds=1)
    canonical = json.dumps(
        record, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    assert signed(operator.key["public_key"], told["release_signature"], canonical)
    assert told["download_url"].startswith(
        service.settings.origin + "/downloads/agent/1.2.3/linux/amd64/"
    )
    async with service.client() as http:
        assert (await http.get(told["download_url"])).content == content


async def test_the_other_fields_of_the_heartbeat_stay(operator, seller):
    before = await beat(seller)
    await operator.publish("1.1")
    after = await beat(seller)
    assert {name: value for name, value in after.items() if name not in UPDATE_FIELDS} == before | {
        "update_available": True
    }


@pytest.mark.night
@pytest.mark.parametrize(
    ("version", "platform", "available"),
    [
        ("1.0", "linux/amd64", True),
        ("1.0", "linux/x86_64", True),
        ("1.1", "linux/amd64", False),
        ("2.0", "linux/amd64", False),
        ("1.0", "darwin/arm64", False),
        ("nightly", "linux/amd64", False),
        (None, None, True),
    ],
)
async def test_who_is_told_of_an_update(operator, seller, version, platform, available):
    await operator.publish("1.1")
    await operator.publish("9.9", product="desktop")
    told = await beat(seller, version, platform)
    assert (told["update_available"], told["force_update"]) == (available, False)
    assert bool(UPDATE_FIELDS & told.keys()) is available


@pytest.mark.night
async def test_the_desktop_wrapper_asks_for_its_own_product_platform_and_channel(operator, seller):
    await operator.publish("9.9")
    await operator.publish("3.0", product="desktop", platform="windows/amd64")
    await operator.publish("3.1", product="desktop", platform="windows/amd64", channel="beta")
    await operator.publish("2.9", product="desktop", platform="darwin/arm64")

    async def offered(**query: str) -> str | None:
        return (await check(seller, **query)).get("latest_version")

    assert await offered() == "3.0"
    assert await offered(version="2.0", platform="windows/amd64") == "3.0"
    assert await offered(version="2.0", platform="windows/amd64", channel="beta") == "3.1"
    assert await offered(version="2.0", platform="windows/amd64", channel="") == "3.0"
    assert await offered(version="2.0", platform="darwin/arm64", moon="full") == "2.9"
    assert await offered(version="3.0") is None


@pytest.mark.night
@pytest.mark.day
async def test_a_staged_release_reaches_some_sellers_and_the_same_ones_later(operator, a_seller):
    sellers = [await a_seller() for _ in range(24)]
    reached = []
    for percentage in (30, 60, 100):
        await operator.publish("1.1", percentage=percentage)
        told = [await beat(seller) for seller in sellers]
        reached.append({n for n, answer in enumerate(told) if answer["update_available"]})
    assert reached[0] <= reached[1] <= reached[2] == set(range(24))
    assert len(reached[0]) < 24


async def test_a_killed_version_must_update_and_a_killed_release_is_gone(operator, seller, service):
    await operator.publish("1.1", percentage=1)
    second = await operator.publish("1.2", percentage=1)
    await operator.kill("1.0")
    told = await beat(seller)
    assert (told["force_update"], told["latest_version"]) == (True, "1.2")
    await operator.kill("1.2")
    told = await beat(seller)
    assert (told["force_update"], told["latest_version"]) == (True, "1.1")
    async with service.client() as http:
        assert (await http.get(second["download_url"])).status_code == 404
    await operator.kill("1.1")
    told = await beat(seller)
    assert (told["update_available"], told["force_update"]) == (False, True)
    assert not UPDATE_FIELDS & told.keys()
    await operator.kill("1.0", "--undo")
    assert (await beat(seller))["force_update"] is False


async def test_killing_twice_is_killing_and_undoing_needs_a_kill(operator):
    await operator.kill("1.0")
    await operator.kill("1.0")
    assert len((await operator.json("list"))["kills"]) == 1
    assert "is not killed" in await operator.refused("kill", "1.1", "--product", "agent", "--undo")


async def test_killing_what_was_never_published_says_so_and_a_killed_version_is_not_published(
    operator,
):
    await operator.publish("1.1")
    known = await operator.run("kill", "1.1.0", "--product", "agent")
    unknown = await operator.run("kill", "1.11", "--product", "agent")
    assert ("was published" in known.output, "was published" in unknown.output) == (False, True)
    assert "is killed" in await operator.refused(*operator.arguments("1.1", percentage=5))
    assert "is killed" in await operator.refused(*operator.arguments("1.11"))


async def test_an_unparseable_version_is_forced_only_if_the_kill_list_names_it(operator, seller):
    await operator.publish("1.1")
    await operator.kill("nightly-7")
    assert (await beat(seller, "nightly-8"))["force_update"] is False
    told = await beat(seller, "nightly-7")
    assert (told["force_update"], told["latest_version"]) == (True, "1.1")


async def test_an_expired_release_is_not_offered_until_it_is_published_again(operator, seller):
    await operator.publish("1.1", expires_days=10)
    clock.shift(timedelta(days=11))
    assert (await beat(seller))["update_available"] is False
    await operator.publish("1.1", expires_days=10)
    assert (await beat(seller))["update_available"] is True


async def test_the_update_check_needs_a_key(service):
    async with service.client() as http:
        assert (await http.get("/api/v1/desktop/update")).status_code == 401


async def test_a_heartbeat_reads_no_release_from_the_database(operator, seller, service):
    await operator.publish("1.1")
    engine, statements = service.app.state.database.engine.sync_engine, []

    def note(_connection, _cursor, statement: str, *_: object) -> None:
        statements.append(statement)

    # The background reads releases whenever it likes; while this test listens, it waits for the
    # turn that the test holds. A heartbeat that read them by the same way would wait forever.
    async with asyncio.timeout(60), service.app.state.releases._reading:
        event.listen(engine, "before_cursor_execute", note)
        try:
            assert (await beat(seller))["update_available"] is True
        finally:
            event.remove(engine, "before_cursor_execute", note)
    assert [statement for statement in statements if "release" in statement] == []


# Downloads


@pytest.fixture
async def download(operator, service):
    """`await download(Range="bytes=0-1")` of a published artifact of 1,000 bytes."""
    content = bytes(range(250)) * 4
    made = await operator.publish("1.1", content=content)

    async def download(method: str = "GET", /, **headers: str):
        async with service.client() as http:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await http.request(method, made["download_url"], headers=named)

    download.content, download.etag, download.made = content, f'"{made["sha256"]}"', made
    return download


async def test_a_download_is_public_and_may_be_kept_for_ever(download):
    answer = await download()
    assert (answer.status_code, answer.content) == (200, download.content)
    assert answer.headers["Content-Length"] == "1000"
    assert answer.headers["ETag"] == download.etag
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert "immutable" in answer.headers["Cache-Control"]
    assert 'filename="cardsync.whl"' in answer.headers["Content-Disposition"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_head_tells_size_and_hash(download):
    answer = await download("HEAD", Range="bytes=0-1")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (answer.headers["Content-Length"], answer.headers["ETag"]) == ("1000", download.etag)
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=900-", 900, 1000),
        ("bytes=999-5000", 999, 1000),
        ("bytes=-10", 990, 1000),
        ("bytes=-5000", 0, 1000),
    ],
)
async def test_a_range(download, asked, start, end):
    answer = await download(Range=asked)
    assert (answer.status_code, answer.content) == (206, download.content[start:end])
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/1000"
    assert answer.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize(
    "asked", ["bytes=5-4", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", ""]
)
async def test_a_range_that_is_none_gets_the_whole(download, asked):
    answer = await download(Range=asked)
    assert (answer.status_code, len(answer.content)) == (200, 1000)


@pytest.mark.parametrize("asked", ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
async def test_a_range_behind_the_end(download, asked):
    answer = await download(Range=asked)
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer.headers["Content-Range"] == "bytes */1000"


async def test_a_range_of_something_else_gets_the_whole(download):
    assert (await download(Range="bytes=0-9", If_Range='"something else"')).status_code == 200
    assert (await download(Range="bytes=0-9", If_Range=download.etag)).status_code == 206


async def test_unchanged_is_304(download):
    answer = await download(If_None_Match=f'"x", {download.etag}')
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", download.etag)


@pytest.mark.parametrize(
    "path",
    [
        "/downloads/agent/1.1/linux/amd64/other.whl",
        "/downloads/agent/1.2/linux/amd64/cardsync.whl",
        "/downloads/agent/1.1/linux/arm64/cardsync.whl",
        "/downloads/agent/1.1/cardsync.whl",
        "/downloads/desktop/1.1/linux/amd64/cardsync.whl",
        "/downloads/moon/1.1/linux/amd64/cardsync.whl",
        "/downloads/agent/1.1/linux/amd64/../../../../secret.key",
        "/downloads/agent/nightly/linux/amd64/cardsync.whl",
    ],
)
async def test_what_was_not_published_is_not_found(download, service, path):
    async with service.client() as http:
        for method in ("GET", "HEAD"):
            assert (await http.request(method, path)).status_code == 404


async def test_bytes_that_are_gone_are_not_found_and_no_crash(download, service):
    key = f"releases/{download.made['sha256']}/cardsync.whl"
    await service.work.store.delete(key)
    assert (await download()).status_code == 404
    assert (await download("HEAD")).status_code == 404


@pytest.mark.night
async def test_a_store_in_the_cloud_serves_its_bytes_itself(download, service):
    bucket = S3Store("cards", access_key_id="id", secret_access_key="secret", region="eu-central-1")
    async with another_process(service) as other:
        other.app.state.store = CloudStore(bucket)
        async with other.client() as http:
            for method in ("GET", "HEAD"):
                answer = await http.request(method, download.made["download_url"])
                assert (answer.status_code, answer.content) == (302, b"")
                assert answer.headers["Cache-Control"] == "no-store"
                where = urlsplit(answer.headers["Location"])
                assert where.path.endswith(f"releases/{download.made['sha256']}/cardsync.whl")
                assert "X-Amz-Signature=" in where.query


# Every process knows


@contextlib.asynccontextmanager
async def another_process(service, **settings):
    """A second application, with pools and caches of its own."""
    app = create_app(service.settings.model_copy(update=settings))
    started, stop = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.lifespan():
            started.set()
            await stop.wait()

    task = asyncio.create_task(live())
    await started.wait()
    try:
        yield replace(service, app=app)
    finally:
        stop.set()
        await task


async def knows(service, version: str | None) -> bool:
    releases = service.app.state.releases.shelf("agent").releases
    return (str(releases[0].version) if releases else None) == version


async def listeners(service) -> list[int]:
    async with service.database.shared() as session:
        query = text(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = :name AND datname = current_database()"
        )
        return list(await session.scalars(query, {"name": notices.APPLICATION_NAME}))


@pytest.mark.night
async def test_what_is_published_reaches_every_process_by_a_notice(operator, service):
    # The slow pace is an hour: only the notice can be so fast.
    async with another_process(service, release_refresh_seconds=3600) as other:
        for version in ("1.1", "1.2"):
            await operator.json(*operator.arguments(version))
            await eventually(
                lambda v=version: knows(service, v), "the first process never heard of it"
            )
            await eventually(
                lambda v=version: knows(other, v), "the second process never heard of it"
            )
        await operator.run("kill", "1.2", "--product", "agent")

        async def killed() -> bool:
            return other.app.state.releases.shelf("agent").kills == {"1.2"}

        await eventually(killed, "the second process never heard of the kill")


@pytest.mark.night
async def test_a_new_process_knows_from_its_first_request_on(operator, service):
    await operator.publish("1.1")
    async with another_process(service, release_refresh_seconds=3600) as other:
        assert await knows(other, "1.1")


@pytest.mark.night
@pytest.mark.day
async def test_a_process_whose_connection_broke_hears_again(operator, service, cut_off):
    async with another_process(service, release_refresh_seconds=3600) as other:
        await eventually(lambda: _are(service, 2), "the processes do not listen")
        await cut_off()
        await operator.json(*operator.arguments("1.1"))
        await eventually(lambda: knows(other, "1.1"), "it never heard of it")
        await eventually(lambda: _are(service, 2), "the processes do not listen again")
        await operator.json(*operator.arguments("1.2"))
        await eventually(lambda: knows(other, "1.2"), "the new connection hears nothing")


async def test_callbacks_are_called_after_every_connect_for_what_may_have_been_missed(
    service, cut_off
):
    heard: list[str] = []
    ear = Notices(service.database.url)
    ear.on("test topic", heard.append)
    async with ear.listening():
        for times in (1, 2, 3):

            async def called(times: int = times) -> bool:
                return heard == [""] * times

            await eventually(called, f"not called after connect number {times}")
            await cut_off()


@pytest.fixture
def cut_off(service, owner_url):
    """Ends the connections of all who listen."""

    async def cut_off() -> None:
        with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
            for pid in await listeners(service):
                owner.execute("SELECT pg_terminate_backend(CAST(%s AS int))", [pid])

    return cut_off


async def _are(service, count: int) -> bool:
    return len(await listeners(service)) == count


async def test_without_notices_the_slow_pace_tells(operator, service):
    known = KnownReleases(service.database)
    async with known.kept_fresh(0.05):
        await operator.json(*operator.arguments("1.1"))

        async def told() -> bool:
            return bool(known.shelf("agent").releases)

        await eventually(told, "the slow pace did not read anew")


async def test_a_download_that_this_process_has_not_heard_of_is_looked_up(operator, service):
    known = KnownReleases(service.database)
    await operator.json(*operator.arguments("1.1"))
    assert known.shelf("agent").releases == ()
    assert await known.artifact("agent", "1.1", "linux/amd64", "cardsync.whl") is not None


async def test_a_notice_comes_with_its_payload_and_only_if_the_transaction_commits(service):
    heard: list[str] = []
    ear = Notices(service.database.url)
    ear.on("test topic", lambda payload: 1 / 0)
    ear.on("test topic", heard.append)
    async with ear.listening():

        async def listens() -> bool:
            return heard == [""]

        await eventually(listens, "callbacks are called once after connecting")
        with contextlib.suppress(ZeroDivisionError):
            async with service.database.shared() as session:
                await notify(session, "test topic", "never")
                raise ZeroDivisionError
        async with service.database.shared() as session:
            await notify(session, "another topic", "elsewhere")
            await notify(session, "test topic", "now")

        async def told() -> bool:
            return heard == ["", "now"]

        await eventually(told, "the notice did not come, or another one did")


@pytest.mark.night
async def test_a_process_starts_and_stops_while_the_database_is_away(service):
    away = service.settings.model_copy(
        update={"database_url": "postgresql://nobody@127.0.0.1:1/none"}
    )
    async with another_process(replace(service, settings=away)) as other:
        assert other.app.state.releases.shelf("agent").releases == ()
