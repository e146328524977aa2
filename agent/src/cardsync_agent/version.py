"""Holds the version of cardsync and of the agent: the one place that names it."""

__version__ = "0.3.0.dev0"
