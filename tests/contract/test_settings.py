"""Settings: where values come from, which source wins, and that the page about them is true."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError
from sqlalchemy import create_engine

from cardsync.cli import program
from cardsync.platform.database.urls import KEPT_ALIVE, engine_url, libpq_url, pooler_url
from cardsync.platform.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch):
    import os

    for name in [name for name in os.environ if name.startswith("CARDSYNC_")]:
        monkeypatch.delenv(name)


def test_the_page_in_git_is_what_the_program_prints():
    printed = CliRunner().invoke(program, ["settings"])
    assert printed.exit_code == 0
    assert PAGE.read_text() == printed.output, "run: make openapi"


def test_the_page_names_every_setting_with_its_meaning():
    page = PAGE.read_text()
    for name, info in Settings.model_fields.items():
        assert f"### `{name}`" in page
        assert info.description
        assert info.description in page


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("foo", "must begin with postgresql://"),
        ("mysql://u:secret@h/d", "must begin with postgresql://"),
        ("postgresql://u:secret@h/d?nosuch=1", "cannot be read"),
        ("postgresql://u:secret@h:abc/d", "its port is not a number"),
        ("postgresql://u:%zzsecret@h/d", "cannot be read"),
        ("postgresql://u:12/secret@h/d", "an @ too many"),
        ("postgresql://u:sec@ret@h/d", "an @ too many"),
        ("postgresql://u:se@127.0.0.1:ret@h/d", "an @ too many"),
    ],
)
@pytest.mark.parametrize("name", ["DATABASE_URL", "MIGRATION_DATABASE_URL", "POOLER_DATABASE_URL"])
def test_a_database_that_no_url_names_is_told_without_it(monkeypatch, name, url, why):
    monkeypatch.setenv(f"CARDSYNC_{name}", url)
    with pytest.raises(ValidationError) as told:
        Settings()
    assert why in str(told.value)
    assert not any(part in str(told.value) for part in ("secret", "ret@", "zz"))


def test_a_pooler_is_named_as_a_database_is_and_its_dead_host_is_noticed(monkeypatch):
    """libpq's message about a URL that it cannot read would hold the password."""
    url = "postgresql+psycopg://cardsync_app:secret@pooler:6432/d?keepalives_idle=9"
    monkeypatch.setenv("CARDSYNC_POOLER_DATABASE_URL", url)
    pooler = Settings().pooler_database_url
    assert pooler == url.replace("+psycopg", "")
    given = conninfo_to_dict(pooler_url(pooler))
    assert given.pop("keepalives_idle") == "9"
    kept = {name: str(value) for name, value in KEPT_ALIVE.items() if name != "keepalives_idle"}
    assert kept.items() <= given.items()


def test_no_database_is_another_than_the_embedded_one_only_for_migrations(monkeypatch):
    """An empty DATABASE_URL would silently begin another database."""
    monkeypatch.setenv("CARDSYNC_MIGRATION_DATABASE_URL", "")
    assert Settings().migration_database_url is None
    monkeypatch.setenv("CARDSYNC_DATABASE_URL", "")
    with pytest.raises(ValidationError, match="must begin with postgresql://"):
        Settings()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:%40%2F%20+'@h:5433/d?sslmode=require",
        "postgresql://u:12#b@h/d",
        "postgresql://u:[12@h/d",
        "postgresql://h/d?password=se+c",
        "postgres://h",
        "postgresql+psycopg://u@h/d?application_name=my%20shop",
        "postgresql://u@[::1]:5433/d",
        "postgresql://h1:5432,h2:5433/d",
        "postgresql:///d?host=h1,h2&port=5432,5433",
        "postgresql://u@%2Frun%2Fpg/d",
        "postgresql:///d?host=/run/some%40%20where",
        "postgresql://u@/d?host=%40abstract",
        "postgresql:///d?options=-c%20work_mem%3D1MB",
    ],
)
def test_a_database_is_read_as_libpq_reads_it_with_the_role_that_policies_bind(monkeypatch, url):
    monkeypatch.setenv("CARDSYNC_DATABASE_URL", url)
    given = conninfo_to_dict(Settings().database_url)
    ours = f"{given.get('options', '')} -c TimeZone=UTC -c jit=off -c role=cardsync_app".strip()
    plain = libpq_url(Settings().database_url)
    wanted = {name: str(value) for name, value in KEPT_ALIVE.items()} | given | {"options": ours}
    assert conninfo_to_dict(plain) == wanted
    assert conninfo_to_dict(libpq_url(plain)) == conninfo_to_dict(plain)
    engine = create_engine(engine_url(plain))
    _, used = engine.dialect.create_connect_args(engine.url)
    assert {name: used[name] for name in used if name != "context"} == wanted
    monkeypatch.setenv("CARDSYNC_DATABASE_URL", plain)
    assert Settings().database_url == plain


@pytest.mark.parametrize(
    "url", ["", "bogus://x", "s3://", "s3:bucket", "https://bucket", "file:///tmp", "s3:///x"]
)
def test_an_object_store_is_a_bucket(monkeypatch, url):
    monkeypatch.setenv("CARDSYNC_OBJECT_STORE_URL", url)
    with pytest.raises(ValidationError, match="it must be like s3://bucket/folder"):
        Settings()


# decisions.md, section 10, of the settings that exist so far.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bind", "127.0.0.1:8000"),
        ("metrics_bind", "127.0.0.1:9464"),
        ("database_url", None),
        ("object_store_url", None),
        ("allow_unknown_lines", False),
        ("default_plan", "founder"),
        ("sync_interval_minutes", 360),
        ("sync_cooldown_seconds", 3600),
        ("stale_lock_seconds", 300),
        ("lease_seconds", 30),
        ("slab_rows", 20_000),
        ("claim_ttl_seconds", 600),
        ("upload_retention_days", 30),
        ("screenshot_retention_days", 14),
        ("unclaimed_retention_days", 1),
        ("history_retention_days", 730),
        ("rate_limit_general", "300/min:100"),
        ("rate_limit_uploads", "60/min:60"),
        ("rate_limit_sync_request", "20/min:20"),
        ("rate_limit_discovery", "60/min:30"),
        ("rate_limit_writes", "60/min:30"),
        ("rate_limit_sign_in", "5/min:5"),
        ("rate_limit_sign_in_account", "10/min:20"),
        ("rate_limit_sign_in_address", "30/min:30"),
        ("rate_limit_anonymous", "60/min:60"),
        ("trusted_proxies", ""),
    ],
)
def test_the_default_is_the_decided_one(name, value):
    assert getattr(Settings(), name) == value


def test_the_data_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert Settings().data_dir == tmp_path / ".local" / "share" / "cardsync"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Settings().data_dir == tmp_path / "data" / "cardsync"


def test_the_environment_sets_a_value(monkeypatch):
    monkeypatch.setenv("CARDSYNC_STALE_LOCK_SECONDS", "7")
    assert Settings().stale_lock_seconds == 7


def test_a_secret_may_stand_in_a_file(monkeypatch, tmp_path):
    secret = tmp_path / "database"
    secret.write_text("postgresql://user:password@host/db\n")
    monkeypatch.setenv("CARDSYNC_DATABASE_URL_FILE", str(secret))
    assert Settings().database_url == "postgresql://user:password@host/db"


def a_toml(monkeypatch, tmp_path, text: str) -> None:
    path = tmp_path / "cardsync.toml"
    path.write_text(text)
    monkeypatch.setenv("CARDSYNC_CONFIG", str(path))


def test_a_toml_file_sets_values(monkeypatch, tmp_path):
    a_toml(monkeypatch, tmp_path, 'public_url = "https://sync.example"\nweb_workers = 3\n')
    assert (Settings().public_url, Settings().web_workers) == ("https://sync.example", 3)


def test_the_toml_file_may_stand_in_the_users_folder(monkeypatch, tmp_path):
    a_toml(monkeypatch, tmp_path, "web_workers = 3\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARDSYNC_CONFIG", "~/cardsync.toml")
    assert Settings().web_workers == 3


def test_of_several_sources_the_strongest_wins(monkeypatch, tmp_path):
    a_toml(monkeypatch, tmp_path, 'secret_key = "toml"\n')
    assert Settings().secret_key == "toml"
    (tmp_path / "key").write_text("file")
    monkeypatch.setenv("CARDSYNC_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert Settings().secret_key == "file"
    monkeypatch.setenv("CARDSYNC_SECRET_KEY", "environment")
    assert Settings().secret_key == "environment"
    assert Settings(secret_key="argument").secret_key == "argument"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLAB_ROWS", "20001"),
        ("SLAB_ROWS", "0"),
        ("SYNC_INTERVAL_MINUTES", "29"),
        ("WEB_WORKERS", "many"),
        ("LEASE_SECONDS", "0"),
        ("RATE_LIMIT_GENERAL", "300"),
        ("RATE_LIMIT_ANONYMOUS", "0/min"),
        ("TRUSTED_PROXIES", "10.0.0.0/8, proxy.example"),
        ("BIND", ""),
        ("BIND", "nowhere"),
        ("BIND", "127.0.0.1:65536"),
        ("METRICS_BIND", "nowhere"),
        ("METRICS_BIND", "127.0.0.1:"),
        ("DEFAULT_PLAN", "gold"),
        ("DEFAULT_PLAN", ""),
        ("DEFAULT_POSTAGE_STEPS", ""),
        ("DEFAULT_POSTAGE_STEPS", "5:1.49"),
    ],
)
def test_an_impossible_value_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(f"CARDSYNC_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_without_an_address_there_are_no_metrics(monkeypatch):
    monkeypatch.setenv("CARDSYNC_METRICS_BIND", "")
    assert Settings().metrics_bind == ""


def test_a_command_names_the_setting_that_is_wrong_in_one_line(monkeypatch):
    monkeypatch.setenv("CARDSYNC_SLAB_ROWS", "many")
    answer = CliRunner().invoke(program, ["admin", "seller", "show", "1"])
    assert answer.exit_code == 1
    assert answer.stderr.startswith("Error: setting CARDSYNC_SLAB_ROWS: ")
    assert answer.stderr.count("\n") == 1


def test_the_origin_is_the_public_url_else_the_address_served():
    assert Settings(public_url="https://sync.example/").origin == "https://sync.example"
    assert Settings(bind="0.0.0.0:80").origin == "http://0.0.0.0:80"
