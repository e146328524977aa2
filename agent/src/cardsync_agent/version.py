"""Defines the version of cardsync and of the agent; no other module names it."""

__version__ = "0.3.0.dev0"
