"""Runs the `cardsync-agent` command, for `python -m cardsync_agent`."""

from cardsync_agent.cli import main

raise SystemExit(main())
