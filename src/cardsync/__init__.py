"""cardsync prices a seller's inventory: it imports the CSV, matches the cards, applies the seller's
rules, and exports the price file.
"""

from cardsync.platform.version import __version__ as __version__
