"""Starts the database, web and worker processes of the service, keeps them running, and stops them.

Children watch their parent: if the supervisor is killed they end by themselves, and the next start
adopts the database.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psycopg
import structlog

from cardsync.operations.processes import bind_address, embedded, first_browser
from cardsync.operations.processes.backup_children import (
    daily_backups,
    first_restore,
    has_no_seller,
)
from cardsync.operations.processes.child import MAX_QUICK_DEATHS, Child, child_env, stop
from cardsync.operations.processes.metrics_server import fold_dead, metrics_folder, metrics_served
from cardsync.operations.processes.worker_memory import frugal
from cardsync.platform import clock
from cardsync.platform.concurrency import every_in_thread
from cardsync.platform.database.migrate import keep_seal, migrate
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.telemetry.exporting import exporting

log = structlog.get_logger(__name__)

WEB = "web"
# A full disk does not prevent the start: requests that need space are refused until there is some.
_NO_ROOM = {
    "object_store: unavailable": "the object store cannot be written: uploads are refused until it can",
    "role: the secret key cannot be written": "the secret key cannot be written: no member or key is made until it can",
}
Say = Callable[[str], None]


@contextmanager
def database(settings: Settings, say: Say, *, migrated: bool = True) -> Iterator[Settings]:
    """Yield settings whose `database_url` is reachable and at the current schema: the URL of the
    settings, or that of the embedded server.
    """
    with ExitStack() as stack:
        if settings.database_url is None:
            server = stack.enter_context(embedded.running(settings.data_dir, say=say))
            stack.enter_context(_kept_up(server, settings.data_dir, say))
            owner = server.admin_url()
            url = server.url()
        else:
            owner, url = (
                settings.migration_database_url or settings.database_url,
                settings.database_url,
            )
        if migrated:
            migrate(owner, say)
            stack.enter_context(_sealed(settings, owner))
        daily = settings.daily_backups
        known: dict[str, object] = {"database_url": url, "migration_database_url": owner}
        known["daily_backups"] = settings.database_url is None if daily is None else daily
        yield settings.model_copy(update=known)


@contextmanager
def _sealed(settings: Settings, owner: str) -> Iterator[None]:
    """Register the installation's seal in the database. On a full disk there may be no secret yet.
    Then members and keys cannot be made until there is room, and all other requests are served.
    """
    try:
        # A role that owns no table cannot do this; the migration does it. /readyz reports a missing
        # seal.
        with suppress(psycopg.errors.InsufficientPrivilege):
            keep_seal(owner, seal(settings))
    except OSError as e:
        log.warning("no_secret_yet", reason=str(e))
    else:
        yield
        return
    over = threading.Event()

    def try_again() -> None:
        while not over.wait(1):
            with suppress(OSError, psycopg.Error):
                keep_seal(owner, seal(settings))
                return

    threading.Thread(target=try_again, daemon=True, name="keep-seal").start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _kept_up(server: embedded.EmbeddedServer, data_dir: Path, say: Say) -> Iterator[None]:
    """Restart the embedded server if it dies while the block lasts; web and worker processes then
    reconnect.
    """

    def watch() -> None:
        if server.is_up():
            return
        log.warning("database_died")
        try:
            with embedded.running(data_dir, say=say):
                log.warning("database_started_again")
        except embedded.EmbeddedError as e:
            log.warning("database_is_down", reason=str(e))

    with every_in_thread(0.5, watch, "database_not_watched"):
        yield


class Stopped(BaseException):
    """SIGTERM or SIGINT arrived."""


def stop_on_signals() -> None:
    def stop(_number: int, _frame: object) -> None:
        # A second signal must not interrupt the stop, because processes would remain.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


@contextmanager
def processes(settings: Settings) -> Iterator[list[Child]]:
    """Run web and worker processes while the block lasts."""
    env = child_env(settings)
    metrics = metrics_folder(bind_address.run_folder(settings))
    env["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    program = [sys.executable, "-m", "cardsync"]
    children = [Child(WEB, [*program, "web"], frugal(env))]
    children += [
        Child(f"worker-{n + 1}", [*program, "worker"], frugal(env))
        for n in range(settings.job_workers)
    ]
    counted = metrics_served(settings, metrics, lambda: {one.name: one.deaths for one in children})
    try:
        for child in children:
            child.start()
        with counted, exporting(settings, "supervisor"):
            yield children
    finally:
        stop(children)
        shutil.rmtree(metrics, ignore_errors=True)


def supervise(
    children: list[Child], also: Callable[[list[Child]], None] = lambda children: None
) -> None:
    """Restart dead children until a signal arrives (`Stopped`); give up when a child repeatedly
    dies at its start. `also` is called from time to time.
    """
    pause = threading.Event()
    while True:
        pause.wait(0.5)
        also(children)
        _revive(children)


def _revive(children: list[Child], *, before_web: Callable[[], None] | None = None) -> None:
    """Start the processes. `before_web` is called during the start and raises if another program
    has taken the address.
    """
    for child in children:
        if child.process is None or child.process.poll() is None:
            continue
        if child.restart_at is None:
            child.died(starting=before_web is not None)
            log.warning("process_died", name=child.name, status=child.process.returncode)
            fold_dead(Path(child.env["PROMETHEUS_MULTIPROC_DIR"]))
        if child.quick_deaths >= MAX_QUICK_DEATHS:
            raise RuntimeError(
                f"the {child.name} process keeps dying: {child.quick_deaths} times in a row, "
                f"the last time {_ending(child.process.returncode)}; its last lines are above"
            )
        if child.restart_at is not None and clock.monotonic() >= child.restart_at:
            if before_web is not None and child.name == WEB:
                before_web()
            child.start()


def _ending(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def serve(settings: Settings, say: Say, *, browser: bool = True) -> None:
    """Run `cardsync serve` until SIGTERM or Ctrl-C."""
    stop_on_signals()
    try:
        with bind_address.alone(settings):
            _serve(settings, say, browser=browser)
    except Stopped:
        say("stopped")


def _serve(settings: Settings, say: Say, *, browser: bool) -> None:
    bind_address.find_free(settings, say)
    with database(settings, say) as ready, processes(ready) as children:
        wait_until_ready(ready, children, say)
        say(f"cardsync serves {ready.origin}")
        if has_no_seller(ready):
            # Only a first run needs this module and its imports.
            from cardsync.shop.accounts import set_up_link

            try:
                link = set_up_link.link(ready)
            except OSError as e:
                say(f"there is no set-up link yet ({e}); `cardsync set-up-link` prints it later")
            else:
                say(f"set it up at {link}")
                if browser:
                    first_browser.show(link)
        with daily_backups(ready), first_restore(ready) as restore:
            supervise(children, restore)


def wait_until_ready(
    settings: Settings,
    children: list[Child],
    say: Say,
    seconds: float = 60,
) -> None:
    """Wait until /readyz answers that the service is ready. Raises if a process repeatedly dies, or
    if it takes too long.

    An unwritable disk does not delay the start: few requests need a writable disk, and it may
    recover.
    """
    deadline = clock.monotonic() + seconds
    pause = threading.Event()
    while True:
        missing = _missing(settings)
        # This check follows the request: if our process has ended in the meantime, another program
        # answered.
        _revive(children, before_web=lambda: bind_address.find_free(settings, say))
        if all(child.runs() for child in children):
            if not missing:
                return
            if set(missing) <= _NO_ROOM.keys():
                for fault in missing:
                    say(_NO_ROOM[fault])
                return
        if clock.monotonic() > deadline:
            raise RuntimeError(
                f"{settings.bind} did not get ready within {seconds:.0f} s: {', '.join(missing)}"
            )
        pause.wait(0.1)


def _missing(settings: Settings) -> list[str]:
    """Return the faults in /readyz's answer; none if everything is available."""
    connection = HTTPConnection(settings.host.strip("[]"), settings.port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        if answer.status == 200:
            return []
        checks = json.loads(answer.read()).get("checks", {})
        faults = [f"{name}: {state}" for name, state in checks.items() if state != "ok"]
        return faults or [f"HTTP {answer.status}"]
    except (OSError, HTTPException, ValueError) as e:
        return [f"no answer ({e})"]
    finally:
        connection.close()
