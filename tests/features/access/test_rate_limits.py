"""Rate limits over HTTP: headers, order of checks, groups, addresses, neighbours, several
processes, a database that is away.
"""

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import text

from builders import Seller, Service, a_csv, a_row
from cardsync.access import keys
from cardsync.access.rate_limits import buckets
from cardsync.asgi import create_app
from cardsync.dashboard.assets import asset_url
from cardsync.platform import errors
from cardsync.platform.database.urls import libpq_url

HEARTBEAT = "/api/v1/heartbeat"
REQUEST = "/api/v1/sync/request"
# Slow enough that a test which takes a minute still sees the burst and nothing more.
SLOW = "1/min"


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """However slow the machine, processes hear of each other: one that gives up admits on what it
    knows alone.
    """
    monkeypatch.setattr(buckets, "EXCHANGE_SECONDS", 60)


@pytest.fixture
def a_service(service: Service, alive):
    """`async with a_service(general="60/min:3") as limited:` another web process on the same
    database, with these limits.
    """

    @asynccontextmanager
    async def make(**limits: str):
        proxies = {"trusted_proxies": limits.pop("trusted_proxies", "")}
        update = {f"rate_limit_{group}": limit for group, limit in limits.items()} | proxies
        settings = service.settings.model_copy(
            update={**update, "rate_limit_exchange_seconds": 0.05}
        )
        app = create_app(settings)
        async with alive(app):
            yield replace(service, settings=settings, app=app)

    return make


def through(seller: Seller, service: Service) -> Seller:
    """The same seller, calling another process."""
    return replace(
        seller, service=service, http=service.client(Authorization=f"Bearer {seller.api_key}")
    )


async def statuses(seller: Seller, times: int, path: str = HEARTBEAT) -> list[int]:
    return [(await seller.post(path)).status_code for _ in range(times)]


async def minutes_ahead(seller: Seller) -> float:
    """Where the arrival time of its general limit stands in the table."""
    async with seller.service.database.shared() as session:
        [(key_id, *_)] = await keys.listed(session, seller.id)
        query = text(
            "SELECT extract(epoch FROM tat - now())::float8 / 60 FROM rate_limit"
            " WHERE bucket = :name"
        )
        return float(await session.scalar(query, {"name": f"general:k{key_id}"}))


def item(header: str, group: str) -> dict[str, int]:
    """The parameters of one item of RateLimit or RateLimit-Policy."""
    found = re.search(rf'"{group}"((?:;[a-z]=[0-9]+)+)', header)
    assert found is not None, header
    return {
        name: int(value) for name, value in (pair.split("=") for pair in found[1][1:].split(";"))
    }


async def test_every_answer_tells_the_policy_and_what_is_left(a_seller, a_service):
    async with a_service(general="300/min:100") as service:
        seller = through(await a_seller(), service)
        first, second = await seller.post(HEARTBEAT), await seller.get("/api/v1/status")
        assert first.headers["RateLimit-Policy"] == '"general";q=300;w=60'
        assert first.headers["RateLimit"] == '"general";r=99;t=1'
        assert item(second.headers["RateLimit"], "general")["r"] in (98, 99)
        missing = await seller.get("/api/v1/uploads/12345")
        broken = await seller.post(HEARTBEAT, content=b"{")
        assert (missing.status_code, broken.status_code) == (404, 400)
        for answer in (missing, broken):
            assert answer.headers["RateLimit-Policy"] == '"general";q=300;w=60'
            assert 90 <= item(answer.headers["RateLimit"], "general")["r"] < 100


@pytest.mark.night
async def test_over_the_limit_it_is_429_with_an_integer_retry_after(a_seller, a_service):
    async with a_service(general=f"{SLOW}:3") as service:
        seller = through(await a_seller(), service)
        assert await statuses(seller, 3) == [200, 200, 200]
        answer = await seller.post(HEARTBEAT)
        assert answer.status_code == 429
        body = answer.json()
        assert set(body) == {"error", "code"}
        assert body["code"] == "rate_limited"
        wait = int(answer.headers["Retry-After"])
        assert 1 <= wait <= 60
        assert str(wait) in body["error"]
        assert answer.headers["RateLimit-Policy"] == '"general";q=1;w=60'
        assert item(answer.headers["RateLimit"], "general")["r"] == 0
        assert abs(item(answer.headers["RateLimit"], "general")["t"] - wait) <= 1
        assert "X-Request-Id" in answer.headers


@pytest.mark.night
@pytest.mark.day
async def test_who_waits_as_long_as_retry_after_says_is_admitted(a_seller, a_service):
    async with a_service(general="60/min:2") as service:
        seller = through(await a_seller(), service)
        while (answer := await seller.post(HEARTBEAT)).status_code == 200:
            pass
        await asyncio.sleep(int(answer.headers["Retry-After"]))
        assert (await seller.post(HEARTBEAT)).status_code == 200


@pytest.mark.night
async def test_all_that_was_admitted_is_told_before_a_refusal_says_how_long_to_wait(
    a_seller, a_service
):
    """Told later, it would count from later on, and who comes back in time would come too soon."""
    async with a_service(general=f"{SLOW}:3") as service:
        seller = through(await a_seller(), service)
        assert await statuses(seller, 4) == [200, 200, 200, 429]
        assert await minutes_ahead(seller) > 2.5


async def test_a_flood_of_one_key_leaves_the_others_alone(a_seller, a_service):
    async with a_service(general=f"{SLOW}:10") as service:
        loud, quiet = through(await a_seller(), service), through(await a_seller(), service)
        flood = await asyncio.gather(*(loud.post(HEARTBEAT) for _ in range(60)))
        assert [answer.status_code for answer in flood].count(200) == 10
        answer = await quiet.post(HEARTBEAT)
        assert (answer.status_code, item(answer.headers["RateLimit"], "general")["r"]) == (200, 9)


@pytest.mark.night
async def test_two_keys_of_a_seller_have_a_limit_each(a_seller, a_service):
    async with a_service(general=f"{SLOW}:2") as service:
        seller = through(await a_seller(), service)
        async with service.database.shared() as session:
            second = await keys.mint(session, seller.id, "second")
        other = through(replace(seller, api_key=second.api_key), service)
        assert await statuses(seller, 3) == [200, 200, 429]
        assert await statuses(other, 3) == [200, 200, 429]


@pytest.mark.night
async def test_both_routes_of_discovery_share_one_group(a_service, a_seller):
    async with a_service(general=f"{SLOW}:20", discovery=f"{SLOW}:2") as limited:
        seller = through(await a_seller(), limited)
        body = {"cards": [{"name": "Nobody has this"}]}
        told = [
            (await seller.post(f"/api/discovery/{route}", json=body)).status_code
            for route in ("availability", "basket", "availability", "basket")
        ]
        assert told == [200, 200, 429, 429]
        assert (await seller.get("/api/lists")).status_code == 200


async def test_a_narrower_group_binds_beside_the_general_one(a_seller, a_service):
    async with a_service(
        general=f"{SLOW}:20", sync_request=f"{SLOW}:2", uploads=f"{SLOW}:3"
    ) as service:
        seller = through(await a_seller(), service)
        first = await seller.post(REQUEST)
        assert first.headers["RateLimit-Policy"] == '"general";q=1;w=60, "sync_request";q=1;w=60'
        assert item(first.headers["RateLimit"], "general")["r"] == 19
        assert item(first.headers["RateLimit"], "sync_request")["r"] == 1
        assert await statuses(seller, 2, REQUEST) == [200, 429]
        refused = await seller.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": "a"})
        assert refused.status_code == 429
        assert refused.headers["RateLimit-Policy"] == '"sync_request";q=1;w=60'
        uploads = [(await seller.upload(a_csv(a_row()))).status_code for _ in range(2)]
        uploads.append((await seller.post("/api/v1/sync/upload-request")).status_code)
        uploads.append((await seller.upload(a_csv(a_row()))).status_code)
        assert uploads == [202, 202, 200, 429]
        # Refused requests cost nothing of the general limit: 2 + 3 and this one were admitted.
        answer = await seller.post(HEARTBEAT)
        assert (answer.status_code, item(answer.headers["RateLimit"], "general")["r"]) == (200, 14)
    await service.run_jobs()


async def test_a_limit_of_0_is_none(a_seller, a_service):
    async with a_service(general="0", anonymous="0") as service:
        seller = through(await a_seller(), service)
        answers = await asyncio.gather(*(seller.post(HEARTBEAT) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {200}
        assert not any(
            "RateLimit" in answer.headers or "RateLimit-Policy" in answer.headers
            for answer in answers
        )
        answer = await seller.get("/api/v1/status", headers={"Authorization": ""})
        assert (answer.status_code, "RateLimit" in answer.headers) == (401, False)


async def test_answers_that_no_limit_checks_carry_the_limit_of_the_address(a_service):
    """Health, files of the pages, unknown addresses and methods: they use nothing up."""
    async with a_service(anonymous=f"{SLOW}:1") as service, service.client() as http:
        for method, path, status in (
            ("GET", "/healthz", 200),
            ("GET", "/readyz", 200),
            ("GET", asset_url("app.css"), 200),
            ("GET", "/nothing", 404),
            ("DELETE", "/api/lists", 405),
            ("DELETE", "/sign-in", 405),
        ):
            for _ in range(3):
                answer = await http.request(method, path)
                assert answer.status_code == status, path
                assert answer.headers["RateLimit-Policy"] == '"anonymous";q=1;w=60'
                assert item(answer.headers["RateLimit"], "anonymous")["r"] == 1


# Without a valid credential
# --------------------------------------------------------------------------------------------------


async def test_requests_without_a_valid_key_are_limited_by_address_and_valid_ones_are_not(
    a_seller, a_service
):
    async with a_service(anonymous=f"{SLOW}:4", trusted_proxies="127.0.0.1") as service:
        wrong = (None, "Bearer nonsense", f"Bearer {keys.new_key()}", "Basic dXNlcjpwYXNz", None)
        here = {"X-Forwarded-For": "198.51.100.21"}
        answers = []
        async with service.client(**here) as http:
            for value in wrong:
                headers = {"Authorization": value} if value else {}
                answers += [await http.get("/api/v1/status", headers=headers)]
            elsewhere = await http.get(
                "/api/v1/status", headers={"X-Forwarded-For": "198.51.100.22"}
            )
        assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 429]
        assert answers[0].headers["RateLimit-Policy"] == '"anonymous";q=1;w=60'
        assert [item(answer.headers["RateLimit"], "anonymous")["r"] for answer in answers] == [
            3,
            2,
            1,
            0,
            0,
        ]
        assert answers[-1].json()["code"] == "rate_limited"
        assert "WWW-Authenticate" not in answers[-1].headers
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert elsewhere.status_code == 401
        seller = through(await a_seller(), service)
        valid = [await seller.post(HEARTBEAT, headers=here) for _ in range(10)]
        assert {answer.status_code for answer in valid} == {200}


@pytest.mark.night
@pytest.mark.day
async def test_addresses_of_one_ipv6_network_count_as_one(a_service):
    async with (
        a_service(anonymous=f"{SLOW}:2", trusted_proxies="127.0.0.0/8") as service,
        service.client() as http,
    ):
        answers = [
            await http.get("/api/v1/status", headers={"X-Forwarded-For": f"2001:db8:77:1::{n:x}"})
            for n in range(3)
        ]
        assert [answer.status_code for answer in answers] == [401, 401, 429]


@pytest.mark.night
async def test_what_nobody_trusted_forwarded_counts_for_nothing(a_service):
    async with a_service(anonymous=f"{SLOW}:2", trusted_proxies="10.0.0.0/8") as service:
        async with service.client("192.0.2.77") as http:
            answers = [
                await http.get("/api/v1/status", headers={"X-Forwarded-For": f"203.0.113.{n}"})
                for n in range(3)
            ]
        assert [answer.status_code for answer in answers] == [401, 401, 429]


async def test_a_revoked_key_is_401_and_spends_of_its_address(a_seller, a_service):
    async with a_service(
        general=f"{SLOW}:5", trusted_proxies="127.0.0.1", anonymous=f"{SLOW}:1"
    ) as service:
        seller = through(await a_seller(), service)
        assert await statuses(seller, 1) == [200]
        async with service.database.shared() as session:
            [(key_id, *_)] = await keys.listed(session, seller.id)
            await keys.revoke(session, key_id)
        seller.http.headers["X-Forwarded-For"] = "198.51.100.23"
        answers = [await seller.post(HEARTBEAT) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [401, 429]
        assert answers[0].headers["RateLimit-Policy"] == '"anonymous";q=1;w=60'


@pytest.mark.night
async def test_a_suspended_account_is_403_within_the_limits_of_its_key(a_seller, a_service):
    async with a_service(general=f"{SLOW}:2") as service:
        seller = through(await a_seller(), service)
        await seller.set(suspended=True)
        answers = [await seller.post(HEARTBEAT) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [403, 403, 429, 429]
        assert [item(answer.headers["RateLimit"], "general")["r"] for answer in answers] == [
            1,
            0,
            0,
            0,
        ]


async def test_public_downloads_and_forged_upload_addresses_are_limited_by_address(a_service):
    async with a_service(anonymous=f"{SLOW}:2", trusted_proxies="127.0.0.1") as service:
        async with service.client(**{"X-Forwarded-For": "198.51.100.25"}) as http:
            got = [
                await http.get("/downloads/agent/1.0/linux/amd64/cardsync.whl") for _ in range(3)
            ]
        assert [answer.status_code for answer in got] == [404, 404, 429]
        async with service.client(**{"X-Forwarded-For": "198.51.100.24"}) as http:
            put = [
                await http.put("/objects/uploads/1/x?expires=1&signature=no", content=b"x")
                for _ in range(3)
            ]
        assert [answer.status_code for answer in put] == [403, 403, 429]


@pytest.mark.night
async def test_a_key_revoked_in_the_middle_of_its_flood_is_soon_401(a_seller, a_service):
    async with a_service(general=f"{SLOW}:1") as service:
        seller = through(await a_seller(), service)
        assert await statuses(seller, 3) == [200, 429, 429]
        async with service.database.shared() as session:
            [(key_id, *_)] = await keys.listed(session, seller.id)
            await keys.revoke(session, key_id)
        await asyncio.sleep(0.6)
        assert await statuses(seller, 1) == [401]


@pytest.mark.day
async def test_sign_ins_are_limited_by_address_and_account(a_service):
    def scope(address: str) -> dict:
        return {"type": "http", "client": (address, 1), "headers": []}

    async with a_service(sign_in=f"{SLOW}:2") as service:
        limits = service.app.state.rate_limits
        for email in ("A@example.invalid", " a@example.invalid"):
            await limits.admit_sign_in(scope("198.51.100.31"), email)
        with pytest.raises(errors.RateLimited) as refused:
            await limits.admit_sign_in(scope("198.51.100.31"), "a@example.invalid")
        assert int(refused.value.headers["Retry-After"]) >= 1
        await limits.admit_sign_in(scope("198.51.100.31"), "b@example.invalid")
        await limits.admit_sign_in(scope("198.51.100.32"), "a@example.invalid")
        await limits.buckets.flush()
        async with service.database.shared() as session:
            names = (
                await session.scalars(
                    text("SELECT bucket FROM rate_limit WHERE bucket LIKE 'sign_in:%'")
                )
            ).all()
        assert names
        assert not any("example" in name for name in names)


@pytest.mark.day
async def test_guesses_at_once_are_limited_by_account_and_by_address_too(a_seller, a_service):
    """From forty addresses at one account, and from one address at forty accounts, in one moment
    and over two processes: the burst is tried, and one more at most that the other process did
    not know of.
    """

    async def guess(service, address: str, email: str) -> int:
        async with service.client(address) as http:
            answer = await http.post("/api/session", json={"email": email, "password": "a guess"})
            return answer.status_code

    seller, account, address = await a_seller(), f"{SLOW}:4", f"{SLOW}:6"
    limits = {"sign_in": "0", "sign_in_account": account, "sign_in_address": address}
    async with a_service(**limits) as one, a_service(**limits) as other:
        from_many = [
            guess(service, f"198.51.100.{40 + n}", seller.email)
            for n in range(20)
            for service in (one, other)
        ]
        answers = await asyncio.gather(*from_many)
        assert 4 <= answers.count(401) <= 5
        assert set(answers) == {401, 429}
        at_many = [
            guess(service, "198.51.100.99", f"nobody-{n}@example.invalid")
            for n in range(20)
            for service in (one, other)
        ]
        answers = await asyncio.gather(*at_many)
        assert 6 <= answers.count(401) <= 7
        assert set(answers) == {401, 429}


# Several processes, and the database
# -------------------------------------------------------------------------------------------------


@pytest.mark.day
async def test_several_processes_share_a_limit(a_seller, a_service):
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(a_service(general=f"{SLOW}:24")) for _ in range(3)
        ]
        seller = await a_seller()
        doors = [through(seller, service) for service in services]
        given = []
        for _ in range(14):
            given += [(await door.post(HEARTBEAT)).status_code for door in doors]
        # Each may have left a part of its own unsaid; all of it stands in the table afterwards,
        # and every process knows.
        admitted = given.count(200)
        assert 24 <= admitted <= 24 + 2 * (24 // 8)
        await asyncio.gather(
            *(service.app.state.rate_limits.buckets.flush() for service in services)
        )
        assert admitted - 2 <= await minutes_ahead(seller) <= admitted + 0.1
        assert [await statuses(door, 1) for door in doors] == [[429]] * 3


@pytest.mark.night
async def test_a_process_that_comes_later_knows_what_was_spent(a_seller, a_service):
    seller = await a_seller()
    async with a_service(general=f"{SLOW}:16") as service:
        assert set(await statuses(through(seller, service), 16)) == {200}
    async with a_service(general=f"{SLOW}:16") as service:
        given = await statuses(through(seller, service), 16)
        assert given.count(200) <= 2


@pytest.mark.night
async def test_nothing_more_is_admitted_while_a_report_is_on_its_way(a_seller, a_service, service):
    seller = await a_seller()
    async with a_service(general=f"{SLOW}:16") as first:
        assert set(await statuses(through(seller, first), 16)) == {200}
    url = libpq_url(service.settings.migration_database_url, role=None)
    async with (
        a_service(general=f"{SLOW}:16") as later,
        await psycopg.AsyncConnection.connect(url) as holder,
    ):
        door = through(seller, later)
        await holder.execute("LOCK TABLE rate_limit IN EXCLUSIVE MODE")
        asked = [asyncio.create_task(statuses(door, 4)) for _ in range(3)]
        await asyncio.sleep(0.5)  # ten times the time between two reports
        assert not any(task.done() for task in asked)
        await holder.commit()
        given = [status for answers in await asyncio.gather(*asked) for status in answers]
        assert given.count(200) <= 2


@pytest.mark.night
async def test_an_ordinary_agent_adds_no_statement_to_its_requests(a_seller, a_service):
    async with a_service(general="300/min:100") as service:
        door = through(await a_seller(), service)
        taken = service.app.state.rate_limits.buckets._turn
        async with taken:  # nobody can exchange anything
            assert await statuses(door, 10) == [200] * 10


async def test_without_the_table_requests_go_on_and_what_was_spent_is_told_later(
    a_seller, a_service, service
):
    async with a_service(general=f"{SLOW}:20") as limited:
        seller = await a_seller()
        door = through(seller, limited)
        try:
            await _as_owner(service, "ALTER TABLE rate_limit RENAME TO rate_limit_away")
            assert await statuses(door, 22) == [200] * 20 + [429] * 2
        finally:
            await _as_owner(service, "ALTER TABLE rate_limit_away RENAME TO rate_limit")
        await limited.app.state.rate_limits.buckets.flush()
        assert await minutes_ahead(seller) > 18


async def _as_owner(service: Service, statement: str) -> None:
    url = libpq_url(service.settings.migration_database_url, role=None)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement)


async def test_full_buckets_are_forgotten(service):
    async with service.database.shared() as session:
        await session.execute(
            text("""INSERT INTO rate_limit
                VALUES ('general:k-1', now() - interval '1 day'), ('general:k-2', now())
                    ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat""")
        )
    assert await buckets.drop_past(service.database) >= 1
    async with service.database.shared() as session:
        left = (
            await session.scalars(
                text("SELECT bucket FROM rate_limit WHERE bucket LIKE 'general:k-%'")
            )
        ).all()
    assert left == ["general:k-2"]


async def test_what_a_process_remembers_is_bounded(service):
    limit = buckets.Limit(60, 10)
    kept = buckets.Buckets(service.database, size=100)
    for number in range(1000):
        bucket = kept.find(buckets.Group.ANONYMOUS, limit, f"198.51.100.{number}")
        assert await kept.take(bucket)
    key = kept.find(buckets.Group.GENERAL, limit, "k1")
    assert len(kept._kept[buckets.Group.ANONYMOUS]) == len(kept._noted) == 100
    assert kept.find(buckets.Group.GENERAL, limit, "k1") is key
