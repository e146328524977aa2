"""A web process as the supervisor starts it: settings in, granian serving the application until SIGTERM, its workers sharing the address."""

from __future__ import annotations

import gc
import resource
from contextlib import suppress

from granian import Granian
from granian.constants import Interfaces, Loops

from cardsync.asgi import create_app
from cardsync.observe import setup_logging
from cardsync.parent import watch_parent
from cardsync.settings import Settings

# So many a web process holds, idle ones too: every agent keeps one open between its polls. Who comes after them waits unheard.
CONNECTIONS = 10_000
OTHER_FILES = 1_000


def run_web(settings: Settings) -> None:
    watch_parent()
    _allow_open_files(CONNECTIONS + OTHER_FILES)
    server = Granian(
        "cardsync.web_process:web_app",
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
        workers_kill_timeout=20,
    )
    server.serve()


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
    watch_parent()
    app = create_app(settings)
    # What stands from here on is kept out of the garbage collector's rounds: walking it took 0.2 s, and every caller waited.
    gc.collect()
    gc.freeze()
    return app
