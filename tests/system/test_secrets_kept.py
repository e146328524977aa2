"""No secret and no buyer is in a command line or a log: real processes play a story with every kind
of secret, while each command line of the machine is read again and again.

Only real processes have command lines, children that live for a moment (pg_dump, encoders), and one
log of all of them. It takes half a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tests.system.processes import Server, a_folder, free_port, until

from builders import a_csv, a_row, an_order
from cardsync.operations.processes import embedded

MAIL, SECRET, SET_UP, DATABASE = (
    f"hidden-{name}-4711" for name in ("mail", "secret", "set-up", "database")
)
BUYER, WRONG = "Hidden Buyer", "hidden-guess-0815"


class CommandLines:
    """Every command line that was seen on this machine."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._stopped = threading.Event()

    def _look(self) -> None:
        while not self._stopped.wait(0.01):
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    with suppress(OSError):
                        self.seen.add(Path(entry.path, "cmdline").read_bytes())

    @contextmanager
    def looking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()


def of_members(server: Server, email: str, password: str) -> dict[str, str]:
    """The secrets that an owner gets on the pages: a session, a key, an invitation, a webhook's."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        wrong = {"email": email, "password": WRONG}
        assert http.post("/api/session", json=wrong).status_code == 401
        right = http.post("/api/session", json={"email": email, "password": password})
        csrf = {"X-CSRF-Token": right.json()["csrf_token"]}
        key = http.post("/api/keys", json={"name": "another"}, headers=csrf).json()["api_key"]
        invited = {"email": "bea@hidden.example", "role": "staff"}
        link = http.post("/api/members/invitations", json=invited, headers=csrf).json()
        # Nobody listens there, so sending fails, which is logged.
        hook = {"url": f"http://127.0.0.1:{free_port()}/hidden-hook", "kinds": []}
        made = http.post("/api/webhooks", json=hook, headers=csrf)
        assert made.status_code == 201, made.text
        sent = http.post(f"/api/webhooks/{made.json()['webhook']['id']}/test", headers=csrf)
        assert sent.status_code < 300, sent.text
        assert http.post("/api/invitations/" + WRONG, json={"password": WRONG}).status_code == 404
        return {
            "cookie": http.cookies["cardsync_session"],
            "csrf": right.json()["csrf_token"],
            "key": key,
            "link": link["invite_url"].rpartition("/")[2],
            "webhook": made.json()["secret"],
            "webhook address": "hidden-hook",
        }


def of_agents(server: Server, folder: Path, key: str) -> str:
    """A whole cycle of the agent; return what it said."""
    (folder / "inbox").mkdir(parents=True)
    (folder / "inbox" / "export.csv").write_bytes(a_csv(a_row(1, price="1.00", market="9.00")))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "cardsync_agent", "run", "--server", server.url),
            *("--folder", str(folder), "--once", "--request", "pricing"),
        ],
        env=os.environ | {"CARDSYNC_AGENT_KEY": key},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    logs = [path.read_text(errors="replace") for path in folder.rglob("*.log*")]
    return "\n".join([ended.stdout, ended.stderr, *logs])


@pytest.mark.first(2)
def test_no_secret_and_no_buyer_is_in_a_command_line_or_a_log():
    lines = CommandLines()
    settings = {
        "MAIL_URL": f"smtp://somebody:{MAIL}@127.0.0.1:{free_port()}",
        "MAIL_FROM": "notices@shop.example",
        "SECRET_KEY": SECRET,
        "SET_UP_TOKEN": SET_UP,
        "DEVELOPMENT_CLIENTS": "true",
        "LOG_LEVEL": "debug",
        "WEB_WORKERS": "2",
    }
    with lines.looking(), a_folder() as folder, Server(folder, **settings) as server:
        made = json.loads(
            server.run(
                *("admin", "seller", "create", "--name", "Some Body"),
                *("--email", "owner@hidden.example", "--json"),
            ).out
        )
        token = server.run(
            "admin", "token", "create", str(made["seller_id"]), "--scope", "mcp:read", "--json"
        )
        secrets = {
            "mail": MAIL,
            "secret": SECRET,
            "set-up": SET_UP,
            "database": DATABASE,
            "guess": WRONG,
            "password": made["password"],
            "first key": made["api_key"],
            "token": json.loads(token.out)["token"],
            "buyer": BUYER,
            "address": "@hidden.example",
        } | of_members(server, "owner@hidden.example", made["password"])
        said = of_agents(server, folder / "shop", made["api_key"])
        bearer = {"Authorization": f"Bearer {made['api_key']}"}
        with httpx.Client(base_url=server.url, headers=bearer, timeout=60) as http:
            orders = [an_order("A-1", buyer_name=BUYER), {"buyer_name": BUYER}]
            http.get("/api/v1/status", headers={"Authorization": f"Bearer {secrets['key'][:-1]}"})
            assert http.post("/api/v1/orders", json=orders[:1]).status_code == 202
            assert http.post("/api/v1/orders", json=orders).status_code == 422
            found = http.get("/api/orders", params={"search": BUYER})
            assert found.status_code == 200
        with embedded.running(server.data_dir) as running:
            url = f"{running.admin_url()}{'&' if '?' in running.admin_url() else '?'}"
            server.env["CARDSYNC_BACKUP_DATABASE_URL"] = f"{url}password={DATABASE}"
        for command in ("now", "rehearse"):
            ran = server.run("backup", command)
            assert ran.code == 0, ran.err
            said += ran.out + ran.err
        until(lambda: "webhook" in server.said(), "the webhook's message")
        server.stop()
        said += server.said()
    seen = b"\n".join(lines.seen).replace(b"\0", b" ").decode(errors="replace")
    assert all(program in seen for program in ("cardsync serve", "cardsync worker", "pg_dump"))
    told = [name for name, secret in secrets.items() if secret in seen or secret in said]
    # `serve` prints the link of the set-up, which opens nothing once there is a shop; and `admin
    # seller create --email` names the owner's address.
    assert told == ["set-up", "address"]
    assert SET_UP not in seen
    assert "@hidden.example" not in said
