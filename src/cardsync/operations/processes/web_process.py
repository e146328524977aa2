"""Runs a web process, as the supervisor starts it: granian serves the application until SIGTERM,
and its workers share the address.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from threading import Thread

from granian import Granian
from granian.constants import Interfaces, Loops
from litestar import Litestar

from cardsync.asgi import create_app
from cardsync.operations.processes.bind_address import held
from cardsync.operations.processes.parent_watch import be_parent, watch_parent
from cardsync.platform.logs import setup_logging
from cardsync.platform.settings import Settings
from cardsync.web.fair_threads import SHORT_TURNS
from cardsync.web.pages import compile_all

# A web process has this many connections, including idle connections: every agent has a connection
# open between its polls. Beyond this number, a client waits without an answer.
CONNECTIONS = 10_000
OTHER_FILES = 1_000
# When the process ends, requests in progress have this time, or less if its supervisor is dead,
# because the next supervisor waits for the address.
ENDING_SECONDS = 20
ORPHANS_ENDING_SECONDS = 5


def run_web(settings: Settings) -> None:
    _allow_open_files(CONNECTIONS + OTHER_FILES)
    server = Granian(
        "cardsync.operations.processes.web_process:web_app",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.web_workers,
        loop=Loops.uvloop,
        factory=True,
        log_access=False,
        log_enabled=False,
        respawn_failed_workers=True,
        backpressure=CONNECTIONS,
        workers_kill_timeout=ENDING_SECONDS,
    )

    def hurry() -> None:
        server.workers_kill_timeout = ORPHANS_ENDING_SECONDS

    watch_parent(orphaned=hurry)
    be_parent()
    workers_end_at_signals_from_the_start()
    with held(settings):
        server.serve()


def workers_end_at_signals_from_the_start() -> None:
    """Block the signal that ends a worker until the worker has its own handlers, because the
    handlers that it inherits from the server would swallow the signal. A signal during the worker's
    start waits until the default handlers are in place.
    """
    signals = {signal.SIGTERM, signal.SIGINT}

    def end_at_signals() -> None:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signals),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, signals),
        after_in_child=end_at_signals,
    )


def _allow_open_files(count: int) -> None:
    """Raise the limit of open files to `count`, or as far as the system allows; the workers inherit
    it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def web_app() -> object:
    """Build the application: each web worker calls this factory."""

    settings = Settings()
    setup_logging(settings.log_level, settings.log_format)
    # If the parent is killed, this process must end by itself, because no other process would end
    # it.
    watch_parent(kill_after=ORPHANS_ENDING_SECONDS)
    gc.disable()
    app = create_app(settings)
    # The garbage collector skips the objects that exist here: to visit them took 0.2 s, during
    # which every caller waited.
    gc.collect()
    gc.freeze()
    gc.enable()
    # The process answers meanwhile, because to compile all templates takes seconds.
    folder = settings.data_dir / "templates"
    Thread(target=_compile_templates, args=(app, folder), daemon=True, name="templates").start()
    return app


def _compile_templates(app: Litestar, folder: Path) -> None:
    with SHORT_TURNS:
        compile_all(app, folder)
    gc.freeze()
