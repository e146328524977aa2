"""`cardsync doctor` at a real service: a line a part, and what to do about what is wrong."""

import json

import pytest
from tests.system.processes import free_port


def lines_of(ran):
    return {(one["part"], one["state"]): one["sentence"] for one in json.loads(ran.out)["lines"]}


def test_the_doctor_names_each_part_and_what_to_do(server):
    before = dict(server.env)
    port = free_port()
    server.env |= {
        "CARDSYNC_MAIL_URL": f"smtp://127.0.0.1:{port}",
        "CARDSYNC_MAIL_FROM": "shop@example.com",
        "CARDSYNC_OTLP_URL": f"http://127.0.0.1:{port}",
    }
    server.sql("CREATE DATABASE cardsync_before_20261101")
    try:
        ran = server.run("doctor", "--json")
        said = server.run("doctor")
    finally:
        server.sql("DROP DATABASE cardsync_before_20261101")
        server.env = before
    assert (ran.code, said.code) == (1, 1)
    lines = lines_of(ran)
    well = {part for part, state in lines if state == "ok"}
    assert well >= {
        "database", "database role", "backup role", "clock", "object store", "secret",
        "address", "versions",
    }  # fmt: skip
    assert "look at MAIL_URL" in lines["mail", "bad"]
    assert f"127.0.0.1:{port} does not answer" in lines["telemetry", "bad"]
    assert "run `cardsync backup now`" in lines["backups", "bad"]
    assert "`cardsync restore --drop-old` drops it" in lines["databases", "note"]
    assert "bad   mail" in said.out


@pytest.mark.night
def test_the_doctor_is_content_without_what_is_not_set(server):
    lines = lines_of(server.run("doctor", "--json"))
    assert lines["mail", "note"] == "none is sent: set MAIL_URL and MAIL_FROM"
    assert not [part for part, _ in lines if part in ("telemetry", "databases")]
