"""The seller's side of cardsync: it uploads inventory exports and downloads price files.

The package imports nothing of the server.
"""

from cardsync_agent.version import __version__ as __version__
