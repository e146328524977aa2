"""Starts the command line, for `python -m cardsync`.

The supervisor's processes are many and live long, so none of them loads the command line or what
another one needs. What they load is no garbage, and looking for some is a fifth of a start.
"""

import gc
import os
import sys


def main() -> None:
    below = sys.argv[1:] in (["web"], ["worker"]) and bool(os.environ.get("CARDSYNC_PARENT"))
    if not below:
        from cardsync.cli import main as command_line

        command_line()
        return

    gc.disable()
    from cardsync.logs import setup_logging
    from cardsync.settings import Settings

    settings = Settings()
    setup_logging(settings.log_level, settings.log_format)
    if sys.argv[1] == "worker":
        from cardsync.processes.worker import serve_jobs

        gc.enable()
        serve_jobs(settings)
    else:
        from cardsync.processes.web_process import run_web

        gc.enable()
        run_web(settings)


main()
