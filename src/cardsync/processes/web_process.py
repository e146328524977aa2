"""A web process as the supervisor starts it: settings in, granian serving the application until
SIGTERM, its workers sharing the address.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from contextlib import suppress

from granian import Granian
from granian.constants import Interfaces, Loops

from cardsync.asgi import create_app
from cardsync.logs import setup_logging
from cardsync.processes.bind_address import held
from cardsync.processes.parent_watch import be_parent, watch_parent
from cardsync.settings import Settings

# So many a web process holds, idle ones too: every agent keeps one open between its polls. Who
# comes after them waits unheard.
CONNECTIONS = 10_000
OTHER_FILES = 1_000
# Requests that are being answered have so long when the process is told to end, and less when its
# supervisor is dead: the next one waits for the address.
ENDING_SECONDS = 20
ORPHANS_ENDING_SECONDS = 5


def run_web(settings: Settings) -> None:
    _allow_open_files(CONNECTIONS + OTHER_FILES)
    server = Granian(
        "cardsync.processes.web_process:web_app",
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
    """A worker inherits the server's handlers, which would swallow the signal that ends it, until
    it has some of its own: what arrives at its beginning waits until the default ones are in
    place."""
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
    """As many as the system lets us have, up to `count`; the workers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def web_app() -> object:
    """The factory that each web worker calls."""

    settings = Settings()
    setup_logging(settings.log_level, settings.log_format)
    # Nobody else is left to end it when its parent was killed.
    watch_parent(kill_after=ORPHANS_ENDING_SECONDS)
    app = create_app(settings)
    # What stands from here on is kept out of the garbage collector's rounds: walking it took 0.2
    # s, and every caller waited.
    gc.collect()
    gc.freeze()
    return app
