"""The seller's side of cardsync: it carries inventory exports up and price files down.

It imports nothing of the server.
"""

from cardsync_agent.version import __version__ as __version__
