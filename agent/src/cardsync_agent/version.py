"""Holds the version of cardsync and of the agent, the only place that names it."""

__version__ = "0.3.0.dev0"
