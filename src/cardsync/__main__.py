"""Starts the command line, for `python -m cardsync`, or a process of the supervisor.

The supervisor has several long-lived processes, so each loads only its own modules, not those of
the command line. Requests wait for the start of a process for heavy reads, so its start must be
fast. Garbage collection is off during imports, which create no garbage: it would take a fifth of
the start-up time.
"""

import gc
import os
import sys


def main() -> None:
    if sys.argv[1:] == ["heavy"]:
        _serve_heavy_reads()
        return
    below = sys.argv[1:] in (["web"], ["worker"]) and bool(os.environ.get("CARDSYNC_PARENT"))
    if not below:
        from cardsync.cli import main as command_line

        command_line()
        return

    gc.disable()
    from cardsync.platform.logs import setup_logging
    from cardsync.platform.settings import Settings

    settings = Settings()
    setup_logging(settings.log_level, settings.log_format)
    if sys.argv[1] == "worker":
        from cardsync.operations.processes.worker import serve_jobs

        gc.enable()
        serve_jobs(settings)
    else:
        from cardsync.operations.processes.web_process import run_web

        gc.enable()
        run_web(settings)


def _serve_heavy_reads() -> None:
    from cardsync.operations.processes.worker_memory import begin_anew

    begin_anew()
    gc.disable()
    from cardsync.operations.processes.heavy_process import serve_heavy_reads

    gc.freeze()
    gc.enable()
    serve_heavy_reads()


main()
