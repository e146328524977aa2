"""Workflow packs: the operator's commands, what agents are offered, and that an agent believes it."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import event, text

from browsers import joined
from cardsync.agents.releases import signing
from cardsync.agents.releases.signing import PACK_DOMAIN
from cardsync.agents.workflows import pack_form, publish_packs
from cardsync.cli import program
from cardsync.platform import errors
from cardsync.platform.logs import setup_logging
from cardsync_agent.signed_release import Untrusted, read_key
from cardsync_agent.workflow import pack
from cardsync_agent.workflow.signed_pack import Wanted, trusted
from packs_builder import LOCALE, MARKET, ORIGIN, a_pack, a_step, of_step

WANTED = Wanted(MARKET, LOCALE, frozenset({ORIGIN}))
ROUTE = f"/api/v1/workflow/packs/{MARKET}"


class Operator:
    """`cardsync admin workflow …` against the tests' database, with one key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path, self.public_key = signing.make_key(folder / "keys")
        self.key_file = path

    async def run(self, *arguments: object, of: str = "workflow"):
        # In a thread: a command runs an event loop of its own.
        command = ["admin", of, *map(str, arguments)]
        done = await asyncio.to_thread(CliRunner().invoke, program, command)
        # The command wrote its log to a stream that is closed by now.
        setup_logging("warning", "json")
        return done

    def file(self, document: object) -> Path:
        path = self.folder / "pack.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document, indent=2))
        return path

    async def publish(self, document: object):
        return await self.run("publish", self.file(document), "--key-file", self.key_file, "--json")

    async def published(self, document: object) -> dict:
        done = await self.publish(document)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    async def refused(self, document: object) -> str:
        done = await self.publish(document)
        assert done.exit_code == 1, done.output
        [line] = done.stderr.strip().splitlines()
        return line

    async def kill(self, version: int, *options: str) -> None:
        done = await self.run("kill", MARKET, LOCALE, version, *options)
        assert done.exit_code == 0, done.output

    async def listed(self) -> dict:
        return json.loads((await self.run("list", "--json")).stdout)

    def believed(self, answer: dict):
        """The pack of an answer, as an agent with the operator's key reads it."""
        file = {"pack": answer["pack"], "signature": answer["signature"]}
        return trusted(json.dumps(file).encode(), [read_key(self.public_key)], WANTED)


@pytest.fixture
async def operator(service, in_the_environment, tmp_path):
    yield Operator(tmp_path)
    # Packs belong to everybody: other tests have none.
    async with service.database.shared() as session:
        await session.execute(text("DELETE FROM workflow_pack"))
        await session.execute(text("DELETE FROM workflow_pack_kill"))


@pytest.fixture
async def seller(a_seller):
    return await a_seller()


async def offered(seller, have: int = 0, **query: object) -> dict:
    answer = await seller.get(ROUTE, params={"have": have} | query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_server_and_agent_have_one_form():
    """The server's is the agent's file: a checkout without symbolic links would have none."""
    assert Path(pack_form.__file__).read_text() == Path(pack.__file__).read_text()


# The commands


async def test_what_is_published_is_listed_with_its_kills(operator):
    made = await operator.published(a_pack(3))
    assert made["public_key"] == operator.public_key
    assert (made["marketplace"], made["locale"], made["version"]) == (MARKET, LOCALE, 3)
    await operator.kill(2)
    listed = await operator.listed()
    assert [row["version"] for row in listed["packs"]] == [3]
    assert [row["version"] for row in listed["kills"]] == [2]
    told = (await operator.run("list")).output.splitlines()
    assert [line.split()[:4] for line in told] == [
        [MARKET, LOCALE, "3", "published"],
        [MARKET, LOCALE, "2", "killed"],
    ]


@pytest.mark.night
@pytest.mark.parametrize("version", [1, 4, 5])
async def test_a_version_is_higher_than_all_before_it(operator, seller, version):
    await operator.published(a_pack(5))
    told = await operator.refused(a_pack(version, home="/start"))
    assert f"version {version} is not higher than 5, which is published for" in told
    assert operator.believed(await offered(seller)).home == "/"
    # Of another marketplace or locale it is the first.
    await operator.published(a_pack(version, marketplace="other_market"))
    await operator.published(a_pack(version, locale="de"))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (a_step(file="stock", then={"file": "stock"}), "does not download inventory"),
        (a_step("goto", path="/{month}", then={"url": "/"}), "there is no value month"),
        (a_step("upload", element="export", file="prices"), "fetch: there is no file prices"),
    ],
)
async def test_a_pack_with_names_that_the_agent_does_not_know_is_not_published(
    operator, step, reason
):
    steps = [a_step(name="export"), step] if step["verb"] != "download" else [step]
    document = a_pack(workflows={"export_inventory": {"steps": steps}})
    assert f"workflows.export_inventory{'.' if 'fetch' in reason else ': '}{reason}" in (
        await operator.refused(document)
    )
    # One that was kept before is read all the same.
    pack.read(json.dumps(document).encode())


async def test_a_killed_version_is_not_published(operator):
    await operator.kill(7)
    assert "is killed" in await operator.refused(a_pack(7))
    await operator.published(a_pack(8))


async def test_two_who_publish_at_once_leave_one_of_a_version(operator, service):
    key = signing.load_key(operator.key_file)
    drafts = [
        publish_packs.read_draft(operator.file(a_pack(4, home=f"/{number}"))) for number in range(4)
    ]

    async def publish(draft):
        async with service.database.shared() as session:
            await publish_packs.publish(session, draft, key)

    done = await asyncio.gather(*map(publish, drafts), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["CommandError"] * 3 + ["NoneType"]
    assert [row["version"] for row in (await operator.listed())["packs"]] == [4]


async def test_publishers_of_rising_versions_at_once_leave_no_version_behind_a_higher_one(
    operator, service
):
    key = signing.load_key(operator.key_file)
    drafts = [publish_packs.read_draft(operator.file(a_pack(number))) for number in (3, 1, 2)]
    stored: list[int] = []

    async def publish(draft):
        async with service.database.shared() as session:
            await publish_packs.publish(session, draft, key)
            stored.append(draft.version)

    await asyncio.gather(*map(publish, drafts), return_exceptions=True)
    assert stored == sorted(stored)
    assert max(stored) == 3


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "cannot be read"),
        (a_pack(version=0), "version"),
        (a_pack(version=pack.MOST_VERSION + 1), "version"),
        (a_pack(format=2), "format"),
        (a_pack(marketplace="../etc"), "marketplace"),
        (a_pack(locale="english"), "locale"),
        (a_pack(origins=[]), "origins"),
        (a_pack(elements={}), "there is no element export"),
        (a_pack(script="x"), "script"),
        (of_step(a_step("evaluate")), "evaluate"),
        (of_step(a_step("click", element="export", then={})), "has no post-condition"),
        (a_pack(product_lines=["x" * 500] * 1_100), "more than 500,000 bytes"),
        (" " * 1_000_001, "is larger than"),
    ],
)
async def test_a_mistake_is_one_sentence(operator, document, words):
    assert words in await operator.refused(document)
    assert (await operator.listed())["packs"] == []


async def test_what_is_no_key_is_named(operator):
    done = await operator.run("publish", operator.file(a_pack()), "--key-file", __file__)
    assert done.exit_code == 1
    assert "not an unencrypted private key" in done.stderr


async def test_undoing_a_kill_that_is_none_says_so(operator):
    done = await operator.run("kill", MARKET, LOCALE, 5, "--undo")
    assert done.exit_code == 1
    assert "is not killed" in done.stderr
    done = await operator.run("kill", MARKET, LOCALE, 0)
    assert done.exit_code == 2


async def test_a_release_whose_bytes_begin_like_a_signed_pack_is_refused(operator):
    """Its signature would be one of a pack that nobody has checked."""
    path = operator.folder / "build.whl"
    path.write_bytes(PACK_DOMAIN + signing.canonical(a_pack(9)))
    options = ("--product", "agent", "--version", "1.0", "--platform", "linux/amd64")
    done = await operator.run(
        "publish", path, *options, "--key-file", operator.key_file, of="release"
    )
    assert done.exit_code == 1
    assert "its signature would be that of a pack" in done.stderr


# What agents are offered


async def test_an_agent_without_a_pack_gets_the_newest_and_believes_it(operator, seller):
    await operator.published(a_pack(1))
    await operator.published(a_pack(2, product_lines=["Pokémon", "魔法"]))
    answer = await offered(seller)
    assert (answer["version"], answer["killed"]) == (2, [])
    assert answer["pack"] == a_pack(2, product_lines=["Pokémon", "魔法"])
    assert operator.believed(answer).product_lines == ("Pokémon", "魔法")


@pytest.mark.parametrize("version", [20261128, 2026112801, pack.MOST_VERSION])
async def test_a_pack_may_be_numbered_by_its_day(operator, seller, version):
    await operator.published(a_pack(1_000_000))
    await operator.published(a_pack(version))
    answer = await offered(seller, 1_000_000)
    assert answer["version"] == operator.believed(answer).version == version
    await operator.kill(version)
    assert await offered(seller, version) == {"version": 1_000_000, "killed": [version]}
    assert [row["version"] for row in (await operator.listed())["kills"]] == [version]


async def test_a_default_that_is_written_out_stays_in_what_is_signed(operator, seller):
    step = a_step(changes=False, optional=False)
    await operator.published(of_step(step))
    answer = await offered(seller)
    assert answer["pack"]["workflows"]["export_inventory"]["steps"] == [step]
    assert operator.believed(answer).version == 1


@pytest.mark.parametrize("have", [2, 3, 1_000_000])
async def test_an_agent_that_has_it_gets_a_small_answer(operator, seller, have):
    await operator.published(a_pack(2))
    assert await offered(seller, have) == {"version": 2, "killed": []}


async def test_a_killed_version_gives_way_to_the_one_before_it(operator, seller):
    for version in (1, 2):
        await operator.published(a_pack(version))
    await operator.kill(2)
    answer = await offered(seller)
    assert (answer["version"], answer["killed"]) == (1, [2])
    assert operator.believed(answer).version == 1
    assert await offered(seller, 2) == {"version": 1, "killed": [2]}
    await operator.kill(1)
    assert await offered(seller) == {"version": None, "killed": [1, 2]}
    await operator.kill(2, "--undo")
    assert (await offered(seller))["version"] == 2


async def test_a_version_that_came_with_the_agent_is_killed_without_being_published(
    operator, seller
):
    done = await operator.run("kill", MARKET, LOCALE, 4)
    assert "no test_market en 4 was published here" in done.stderr
    assert await offered(seller, 4) == {"version": None, "killed": [4]}


async def test_another_marketplace_or_locale_is_another_pack(operator, seller):
    await operator.published(a_pack(1))
    await operator.published(a_pack(5, locale="de"))
    await operator.kill(9)
    assert (await offered(seller))["version"] == 1
    german = await offered(seller, locale="de")
    assert (german["version"], german["killed"]) == (5, [])
    for address, query in (
        ("other_market", {}),
        (MARKET, {"locale": "fr"}),
        (MARKET, {"locale": "en\0"}),
        (f"{MARKET}%00", {}),
    ):
        answer = await seller.get(f"/api/v1/workflow/packs/{address}", params=query)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("have", [-1, 2**63, "x", ""])
async def test_a_version_that_is_none_is_refused(operator, seller, have):
    await operator.published(a_pack(1))
    answer = await seller.get(ROUTE, params={"have": have})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_the_route_is_for_agents_alone(operator, seller, service):
    await operator.published(a_pack(1))
    async with service.client() as http:
        assert (await http.get(ROUTE)).status_code == 401
    member = await joined(seller, f"member-{seller.email}")
    answer = await member.get(ROUTE)
    assert (answer.status_code, answer.json()["code"]) == (403, "key_required")


async def test_the_offer_is_one_statement(operator, seller, service):
    await operator.published(a_pack(1))
    statements: list[str] = []

    def count(_connection, _cursor, statement, *_rest):
        statements.append(statement)

    engine = service.app.state.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", count)
    try:
        await offered(seller)
    finally:
        event.remove(engine, "before_cursor_execute", count)
    assert len([one for one in statements if "workflow_pack" in one]) == 1


async def test_a_row_that_was_changed_in_the_database_is_not_believed(operator, seller, service):
    await operator.published(a_pack(1))
    async with service.database.shared() as session:
        await session.execute(
            text("UPDATE workflow_pack SET pack = replace(pack, 'inventory', 'prices')")
        )
    with pytest.raises(Untrusted, match="no pinned key has signed it"):
        operator.believed(await offered(seller))


def test_a_refusal_is_for_the_command_line():
    with pytest.raises(errors.CommandError):
        publish_packs.read_draft(Path(__file__))
