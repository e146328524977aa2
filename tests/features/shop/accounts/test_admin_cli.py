"""The operator's commands: sellers and keys, as other programs rely on them."""

import asyncio
import json
import re

import pytest
from click.testing import CliRunner, Result

from builders import a_csv, a_row
from cardsync.access.keys import is_well_formed
from cardsync.cli import program
from cardsync.platform.logs import setup_logging
from world import refused

# decisions.md, section 10, with a value of each.
SETTABLE = {
    "plan": ("trial", "trial"),
    "trial_ends_at": ("2027-01-02T03:04:05Z", "2027-01-02T03:04:05Z"),
    "sync_mode": ("read_only", "read_only"),
    "suspended": ("true", True),
    "past_due": ("yes", True),
    "write_consent": ("false", False),
    "upload_approved": ("1", True),
    "auto_sync_paused": ("on", True),
    "automatic_pricing_paused": ("TRUE", True),
    "sync_interval_minutes": ("45", 45),
    "quiet_hours": ("22:00-06:00", "22:00-06:00"),
    "time_zone": ("Europe/Berlin", "Europe/Berlin"),
    "full_history_requested": ("true", True),
    "planner_opt_in": ("true", True),
    "credits_metering_enabled": ("true", True),
    "object_store_pipeline_enabled": ("false", False),
    "attribution_logging": ("false", False),
    "ship_within_days": ("2", 2),
    "tracking_threshold": ("49.99", "49.9900"),
    "loss_budget": ("80", "80.0000"),
    "direct_program": ("true", True),
    "staff_see_revenue": ("true", True),
    "network_consent": ("true", True),
    "network_published": ("true", True),
    "store_name": ("The Card House", "The Card House"),
    "listing_url_template": (
        "https://shop.example/{marketplace_product_id}",
        "https://shop.example/{marketplace_product_id}",
    ),
    "costing": ("average", "average"),
    "supplies": ("0.15", "0.1500"),
    "letter_postage": ("0.78", "0.7800"),
    "parcel_postage": ("4.5", "4.5000"),
    "postage_steps": ("0:1.27, 12:3.20", "0:1.27,12:3.20"),
}


@pytest.fixture
def run(in_the_environment):
    """`run("seller", "show", 7)` is `cardsync admin seller show 7` against the tests' database."""

    def run(*arguments: object, given: str | None = None) -> Result:
        return CliRunner().invoke(program, ["admin", *map(str, arguments)], input=given)

    yield run
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
def result(run):
    """The JSON that a command prints."""

    def result(*arguments: object) -> dict:
        done = run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return result


@pytest.fixture
def create(result, request):
    """Sellers of their own address."""
    made = 0

    def create(*options: object) -> dict:
        nonlocal made
        made += 1
        email = f"{abs(hash(request.node.nodeid))}-{made}@example.invalid"
        return result("seller", "create", "--name", "Ada", "--email", email, *options)

    return create


def test_create_prints_exactly_four_keys(create):
    made = create()
    assert list(made) == ["seller_id", "email", "password", "api_key"]
    assert isinstance(made["seller_id"], int)
    assert is_well_formed(made["api_key"])
    assert len(made["password"]) >= 12


def test_a_new_seller_has_the_decided_defaults(create, result):
    shown = result("seller", "show", create()["seller_id"])
    assert (shown["plan"], shown["sync_mode"], shown["write_consent"]) == ("founder", "full", True)
    assert shown["product_lines"][0] == "magic"
    assert len(shown["product_lines"]) > 5
    assert not any(
        shown[name]
        for name in (
            "suspended",
            "past_due",
            "upload_approved",
            "auto_sync_paused",
            "planner_opt_in",
        )
    )


def test_create_takes_plan_lines_and_sync_mode(create, result):
    made = create(
        "--plan", "free", "--line", "pokemon", "--line", "magic", "--sync-mode", "read_only"
    )
    shown = result("seller", "show", made["seller_id"])
    assert (shown["plan"], shown["product_lines"], shown["sync_mode"]) == (
        "free",
        ["pokemon", "magic"],
        "read_only",
    )
    assert is_well_formed(made["api_key"])


def test_the_default_plan_is_a_setting(create, result, monkeypatch):
    monkeypatch.setenv("CARDSYNC_DEFAULT_PLAN", "complimentary")
    assert result("seller", "show", create()["seller_id"])["plan"] == "complimentary"


async def reach(service, key: str) -> int:
    async with service.client(Authorization=f"Bearer {key}") as http:
        return (await http.get("/api/v1/status")).status_code


async def test_a_created_key_works_until_it_is_revoked(create, result, run, service):
    # In threads, because the commands have event loops of their own.
    made = await asyncio.to_thread(create)
    assert await reach(service, made["api_key"]) == 200
    [key] = (await asyncio.to_thread(result, "key", "list", made["seller_id"]))["keys"]
    assert (await asyncio.to_thread(run, "key", "revoke", key["key_id"])).exit_code == 0
    assert await reach(service, made["api_key"]) == 401


def test_an_address_is_taken_once(create, run):
    made = create()
    said = refused(
        run("seller", "create", "--name", "B", "--email", made["email"].upper(), "--json")
    )
    assert "belongs to another member" in said


def test_an_unknown_product_line_is_named(run):
    said = refused(
        run(
            "seller",
            "create",
            "--name",
            "B",
            "--email",
            "b@example.invalid",
            "--line",
            "marbles",
            "--json",
        )
    )
    assert "marbles" in said
    assert "magic" in said


def test_show_prints_every_settable_key_and_the_state(create, result):
    shown = result("seller", "show", create()["seller_id"])
    state = {"seller_id", "name", "email", "product_lines", "credit_balance", "last_sync_at"}
    assert shown.keys() == SETTABLE.keys() | state


@pytest.mark.parametrize("key", SETTABLE)
def test_every_key_can_be_set_and_is_shown(any_seller, run, result, key):
    given, shown = SETTABLE[key]
    done = run("seller", "set", any_seller, f"{key}={given}")
    assert done.exit_code == 0, done.output
    assert result("seller", "show", any_seller)[key] == shown


@pytest.fixture(scope="module")
async def any_seller(service):
    from builders import SellerBuilder

    return (await SellerBuilder(service)()).id


def test_several_keys_are_set_at_once(create, run, result):
    seller = create()["seller_id"]
    run("seller", "set", seller, "plan=free", "suspended=true", "store_name=A=B")
    shown = result("seller", "show", seller)
    assert (shown["plan"], shown["suspended"], shown["store_name"]) == ("free", True, "A=B")


@pytest.mark.parametrize(
    "pair", ["trial_ends_at=", "quiet_hours=", "store_name=", "sync_interval_minutes="]
)
def test_an_empty_value_takes_a_setting_back(any_seller, run, result, pair):
    key = pair.rstrip("=")
    run("seller", "set", any_seller, f"{key}={SETTABLE[key][0]}")
    assert run("seller", "set", any_seller, pair).exit_code == 0
    assert result("seller", "show", any_seller)[key] is None


@pytest.mark.parametrize(
    "pair",
    [
        "plan=gold", "sync_mode=half", "suspended=maybe", "sync_interval_minutes=29",
        "sync_interval_minutes=often",
        "sync_interval_minutes=99999999999", "quiet_hours=25:00-06:00", "quiet_hours=late",
        "time_zone=Mars/Olympus",
        "time_zone=../../etc/passwd", "tracking_threshold=lots", "tracking_threshold=NaN",
        "tracking_threshold=-1",
        "tracking_threshold=1e30", "trial_ends_at=tomorrow",
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_in_one_sentence_that_names_the_key(any_seller, run, pair):
    said = refused(run("seller", "set", any_seller, pair))
    assert re.match(rf"Error: {pair.partition('=')[0]} must be ", said)


@pytest.mark.parametrize(
    "pair", ["colour=blue", "plan", "=free", "seller_id=1", "credit_balance=9"]
)
def test_what_is_no_setting_is_refused_with_the_list_of_settings(any_seller, run, pair):
    said = refused(run("seller", "set", any_seller, pair))
    assert "is not a setting" in said
    assert "sync_interval_minutes" in said


def test_one_bad_pair_changes_nothing(create, run, result):
    seller = create()["seller_id"]
    refused(run("seller", "set", seller, "plan=free", "sync_mode=half"))
    assert result("seller", "show", seller)["plan"] == "founder"


@pytest.mark.parametrize(
    "command",
    [
        ("seller", "show", 999999999),
        ("seller", "set", 999999999, "plan=free"),
        ("seller", "delete", 999999999, "--yes"),
        ("key", "create", 999999999),
        ("key", "revoke", 999999999),
        ("key", "list", 999999999),
        ("member", "list", 999999999),
    ],
    ids=lambda command: " ".join(map(str, command)),
)
def test_an_unknown_id_is_refused_in_one_sentence(run, command):
    assert "there is no" in refused(run(*command))


def test_a_second_key_is_shown_once_and_listed_without_its_secret(create, result, run):
    seller = create()["seller_id"]
    minted = result("key", "create", seller, "--name", "laptop")
    assert list(minted) == ["key_id", "api_key"]
    assert is_well_formed(minted["api_key"])
    listed = run("key", "list", seller, "--json").stdout
    keys = json.loads(listed)["keys"]
    assert [list(key) for key in keys] == [
        ["key_id", "name", "created_at", "revoked_at", "ends_at", "own_script"]
    ] * 2
    assert keys[1]["key_id"] == minted["key_id"]
    assert keys[1]["name"] == "laptop"
    assert minted["api_key"][4:] not in listed


def test_a_revoked_key_is_listed_with_its_time_and_revoking_twice_keeps_it(create, result, run):
    seller = create()["seller_id"]
    [key] = result("key", "list", seller)["keys"]
    run("key", "revoke", key["key_id"])
    [first] = result("key", "list", seller)["keys"]
    assert run("key", "revoke", key["key_id"]).exit_code == 0
    [second] = result("key", "list", seller)["keys"]
    assert first["revoked_at"] == second["revoked_at"] is not None


@pytest.mark.parametrize(
    ("pairs", "mints"),
    [
        (["plan=free"], False),
        (["plan=paid"], True),
        (["plan=complimentary"], True),
        (["plan=trial", "trial_ends_at=2999-01-01"], True),
        (["plan=trial", "trial_ends_at=2020-01-01"], False),
    ],
)
def test_minting_needs_a_paid_plan(any_seller, run, pairs, mints):
    run("seller", "set", any_seller, *pairs)
    done = run("key", "create", any_seller, "--json")
    if mints:
        assert done.exit_code == 0
    else:
        assert "paid plan" in refused(done)


def test_an_id_beyond_all_ids_is_a_usage_error(run):
    done = run("seller", "show", 2**70)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_delete_asks_first(create, run, result):
    seller = create()["seller_id"]
    assert run("seller", "delete", seller, given="n\n").exit_code == 1
    assert result("seller", "show", seller)["seller_id"] == seller


@pytest.fixture(scope="module")
async def busy_seller(service):
    """A seller with rows everywhere: heartbeat, cycle, imports, an upload that still waits."""
    from builders import SellerBuilder

    seller = await SellerBuilder(service)()
    await seller.post("/api/v1/heartbeat")
    await service.app.state.last_seen.flush()
    await seller.get("/api/v1/sync/pending")
    await seller.import_csv(a_csv(a_row(1), a_row(2, market="9.00")), **{"X-Sync-Cycle-Id": "c"})
    await seller.upload(a_csv(a_row(1, price="2.00")))
    return seller


async def test_delete_erases_every_row_of_the_seller_and_its_key(
    busy_seller, run, service, owner_url
):
    import psycopg

    from cardsync.platform.database.urls import libpq_url
    from cardsync.tables import metadata

    done = await asyncio.to_thread(run, "seller", "delete", busy_seller.id, "--yes")
    assert done.exit_code == 0, done.output
    with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
        left = {
            table.name
            for table in metadata.sorted_tables
            if "seller_id" in table.columns
            and owner.execute(
                f"SELECT 1 FROM {table.name} WHERE seller_id = {busy_seller.id} LIMIT 1"
            ).fetchone()
        }
        assert owner.execute(f"SELECT 1 FROM seller WHERE id = {busy_seller.id}").fetchone() is None
    assert left == set()
    assert await reach(service, busy_seller.api_key) == 401
    # A nudge that was left behind finds nothing to do.
    await service.run_jobs()


# Credits


def test_a_grant_prints_the_new_balance_and_show_has_it(run, create, result):
    seller_id = create()["seller_id"]
    assert result("credits", "grant", seller_id, 5, "--reason", "a gift")["balance"] == 5
    done = run("credits", "grant", seller_id, 2, "--reason", "another")
    assert (done.exit_code, re.search(r"^balance +7$", done.stdout, re.M) is not None) == (0, True)
    assert result("seller", "show", seller_id)["credit_balance"] == 7


def test_history_is_newest_first_and_adds_up(run, create, result):
    seller_id = create()["seller_id"]
    assert result("credits", "history", seller_id) == {"balance": 0, "transactions": []}
    ids = [
        result("credits", "grant", seller_id, n, "--reason", f" gift {n} ")["transaction_id"]
        for n in (3, 4)
    ]
    told = result("credits", "history", seller_id)
    assert told["balance"] == 7 == sum(row["amount"] for row in told["transactions"])
    rows = [
        {name: value for name, value in row.items() if name != "created_at"}
        for row in told["transactions"]
    ]
    assert rows == [
        {"id": ids[1], "kind": "grant", "amount": 4, "balance_after": 7, "reason": "gift 4"},
        {"id": ids[0], "kind": "grant", "amount": 3, "balance_after": 3, "reason": "gift 3"},
    ]
    done = run("credits", "history", seller_id)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        str(ids[1]),
        str(ids[0]),
        "balance",
    ]


@pytest.mark.parametrize("amount", [0, -1, "1.5", "many", 10**9 + 1])
def test_a_grant_is_a_positive_integer(run, create, amount):
    seller_id = create()["seller_id"]
    assert run("credits", "grant", seller_id, "--reason", "x", "--", amount).exit_code == 2


def test_a_grant_needs_a_reason(run, create, result):
    seller_id = create()["seller_id"]
    assert run("credits", "grant", seller_id, 1).exit_code == 2
    assert "reason" in refused(run("credits", "grant", seller_id, 1, "--reason", "  "))
    assert result("credits", "history", seller_id)["transactions"] == []


def test_a_balance_that_would_burst_is_refused(run, create, result):
    seller_id = create()["seller_id"]
    result("credits", "grant", seller_id, 10**9, "--reason", "all of it")
    assert "1,000,000,000" in refused(run("credits", "grant", seller_id, 1, "--reason", "one more"))
    assert result("credits", "history", seller_id)["balance"] == 10**9


def test_credits_of_nobody(run):
    assert (
        refused(run("credits", "grant", 2**60, 1, "--reason", "x"))
        == f"Error: there is no seller {2**60}"
    )
    assert refused(run("credits", "history", 2**60)) == f"Error: there is no seller {2**60}"


# Members.


def test_a_member_is_invited_by_a_link_and_listed(create, result, run):
    seller = create()
    made = result(
        "member",
        "add",
        seller["seller_id"],
        "--email",
        "bea@" + seller["email"].split("@")[0] + ".invalid",
        "--role",
        "staff",
    )
    assert list(made) == ["member_id", "invite_url"]
    assert re.fullmatch(
        r"http://127\.0\.0\.1:8000/invitations/[A-Za-z0-9_-]{43}", made["invite_url"]
    )
    owner, bea = result("member", "list", seller["seller_id"])["members"]
    assert (owner["email"], owner["role"], owner["joined"]) == (seller["email"], "owner", True)
    assert (bea["member_id"], bea["role"], bea["joined"]) == (made["member_id"], "staff", False)
    assert "invited" in run("member", "list", seller["seller_id"]).output
    again = result("member", "reset-password", bea["member_id"])
    assert again["member_id"] == bea["member_id"]
    assert again["invite_url"] != made["invite_url"]


def test_a_members_role_changes_and_a_member_is_removed(create, result, run):
    seller = create()
    made = result(
        "member", "add", seller["seller_id"], "--email", f"b{seller['email']}", "--role", "staff"
    )
    assert run("member", "role", made["member_id"], "owner").exit_code == 0
    assert result("member", "list", seller["seller_id"])["members"][1]["role"] == "owner"
    assert run("member", "remove", made["member_id"]).exit_code == 0
    assert len(result("member", "list", seller["seller_id"])["members"]) == 1


def test_what_a_member_command_refuses_is_one_sentence(create, result, run):
    seller = create()
    [owner] = result("member", "list", seller["seller_id"])["members"]
    add = ("member", "add", seller["seller_id"], "--role", "staff", "--email")
    assert "not an email address" in refused(run(*add, "bea"))
    assert "has already joined" in refused(run(*add, seller["email"]))
    assert "there is no seller" in refused(
        run("member", "add", 999999, "--role", "staff", "--email", "a@example.invalid")
    )
    assert "there is no member" in refused(run("member", "remove", 999999))
    assert "there is no member" in refused(run("member", "reset-password", 999999))
    assert "only owner" in refused(run("member", "remove", owner["member_id"]))
    assert "only owner" in refused(run("member", "role", owner["member_id"], "staff"))


def test_tokens_are_created_listed_and_revoked(create, run, result):
    seller = create()["seller_id"]
    both = ("--scope", "mcp:read", "--scope", "mcp:write", "--days", 30)
    token = result("token", "create", seller, *both)
    assert set(token) == {"token_id", "token"}
    [listed] = result("token", "list", seller)["tokens"]
    assert (listed["token_id"], listed["scopes"]) == (token["token_id"], ["mcp:read", "mcp:write"])
    assert token["token"] not in json.dumps(listed)
    assert "good" in run("token", "list", seller).stdout
    assert run("token", "revoke", token["token_id"]).exit_code == 0
    [listed] = result("token", "list", seller)["tokens"]
    assert listed["revoked_at"]
    assert "there is no token" in refused(run("token", "revoke", 2**40))
    assert "there is no seller" in refused(run("token", "create", 2**40, "--scope", "mcp:read"))
    assert run("token", "create", seller).exit_code == 2
    assert run("token", "create", seller, "--scope", "all").exit_code == 2
