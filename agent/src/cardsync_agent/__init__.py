"""The seller's side of cardsync: it carries inventory exports up and price files down.

It imports nothing of the server.
"""

__version__ = "0.1.0"
