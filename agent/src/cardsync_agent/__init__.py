"""The seller's side of cardsync: carries inventory exports up and price updates down.

Imports nothing of the server.
"""

__version__ = "0.1.0"
