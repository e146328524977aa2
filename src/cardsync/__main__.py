"""`python -m cardsync`: the same as the `cardsync` command."""

from cardsync.cli import main

main()
