"""`python -m cardsync`: the command line."""

import os
import sys


def main() -> None:
    if sys.argv[1:] == ["worker"] and os.environ.get("CARDSYNC_DATABASE_URL"):
        # A worker below the supervisor lives long: it does not carry the web's modules along.
        from cardsync.observe import setup_logging
        from cardsync.settings import Settings
        from cardsync.worker import serve_jobs

        settings = Settings()
        setup_logging(settings.log_level, settings.log_format)
        serve_jobs(settings)
    else:
        from cardsync.cli import main as command_line

        command_line()


main()
