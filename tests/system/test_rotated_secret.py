"""The installation's secret is rotated while the service runs, and by a command that is killed in the
middle. Only real processes share the file of the secret; it takes half a minute.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from contextlib import suppress

import httpx
import psycopg
import pytest
from tests.system.processes import Server, a_folder, free_port, until

from builders import a_csv, a_row
from cardsync.operations.processes import embedded
from cardsync.platform import secret
from cardsync.platform.settings import Settings
from cardsync.shop.notices.webhook_signature import unsealed

STEPS = ("secret.key.next", "secret.key.former")


class Shop:
    """A seller with a webhook, whose secret must outlive what happens to the installation's."""

    def __init__(self, server: Server) -> None:
        self.server = server
        ran = server.run(
            *("admin", "seller", "create", "--name", "A", "--email", "a@b.example", "--json")
        )
        self.made = json.loads(ran.out)
        with self.signed_in() as (http, csrf):
            hook = {"url": f"http://127.0.0.1:{free_port()}/hook", "kinds": []}
            self.webhook = http.post("/api/webhooks", json=hook, headers=csrf).json()

    def signed_in(self):
        return SignedIn(self.server, self.made)

    def settings(self) -> Settings:
        return Settings(data_dir=self.server.data_dir)

    def webhook_secret(self) -> str:
        """As the present secret alone opens it."""
        [row] = self.server.sql("SELECT seller_id, secret FROM webhook")
        return unsealed(self.settings(), row["seller_id"], row["secret"])

    def goes_on(self) -> None:
        """All that the secret opens works: sign-in, keys, uploads by a presigned address."""
        with self.signed_in() as (http, csrf):
            made = http.post("/api/keys", json={"name": "more"}, headers=csrf)
            assert made.status_code == 201, made.text
        bearer = {"Authorization": f"Bearer {made.json()['api_key']}"}
        with httpx.Client(base_url=self.server.url, headers=bearer, timeout=60) as http:
            for _ in range(4):
                slot = http.post("/api/v1/sync/upload-request").json()
                assert httpx.put(slot["upload_url"], content=a_csv(a_row(1))).status_code == 200

    def is_known(self, seal: bytes) -> bool:
        told = b"ready"
        proof = hashlib.sha256(seal + hashlib.sha256(seal + told).digest()).digest()
        with (
            embedded.running(self.server.data_dir) as running,
            psycopg.connect(running.admin_url()) as connection,
        ):
            row = connection.execute("SELECT is_sealed(%s, %s)", (told.decode(), proof)).fetchone()
        return row == (True,)


class SignedIn:
    def __init__(self, server: Server, made: dict) -> None:
        self.http, self.made = httpx.Client(base_url=server.url, timeout=60), made

    def __enter__(self):
        known = {"email": "a@b.example", "password": self.made["password"]}
        answer = self.http.post("/api/session", json=known)
        assert answer.status_code == 200, answer.text
        return self.http, {"X-CSRF-Token": answer.json()["csrf_token"]}

    def __exit__(self, *_: object) -> None:
        self.http.close()


@pytest.fixture(scope="module")
def shop():
    settings = {"WEB_WORKERS": "2", "DEVELOPMENT_CLIENTS": "true", "RATE_LIMIT_SIGN_IN": "0"}
    with a_folder() as folder, Server(folder, **settings) as server:
        yield Shop(server)


@pytest.mark.night
def test_a_rotation_under_way_and_its_end(shop):
    old = secret.secret_key(shop.settings())
    ran = shop.server.run("admin", "rotate-secret")
    assert ran.code == 0, ran.err
    assert "1 secrets of webhooks" in ran.out
    assert secret.secret_key(shop.settings()) != old
    assert not list(shop.server.data_dir.glob("secret.key.*"))
    assert shop.webhook_secret() == shop.webhook["secret"]
    assert not shop.is_known(secret.seal_of(old))
    shop.goes_on()


@pytest.mark.day
@pytest.mark.parametrize("step", STEPS)
def test_a_rotation_that_is_killed_goes_on_with_the_next_call(shop, step):
    old = secret.secret_key(shop.settings())
    process = shop.server.launch("admin", "rotate-secret")
    seen = shop.server.data_dir / step
    deadline = time.monotonic() + 120
    while not seen.exists() and process.poll() is None and time.monotonic() < deadline:
        pass
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    assert seen.exists() or process.returncode == 0
    # Both are accepted meanwhile.
    assert shop.webhook_secret() == shop.webhook["secret"]
    shop.goes_on()
    until(lambda: shop.server.run("admin", "rotate-secret").code == 0, "the rotation")
    assert secret.secret_key(shop.settings()) != old
    assert not list(shop.server.data_dir.glob("secret.key.*"))
    assert not shop.is_known(secret.seal_of(old))
    assert shop.webhook_secret() == shop.webhook["secret"]
    shop.goes_on()
