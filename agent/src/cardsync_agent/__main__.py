"""`python -m cardsync_agent` does the same as the `cardsync-agent` command."""

from cardsync_agent.cli import main

raise SystemExit(main())
