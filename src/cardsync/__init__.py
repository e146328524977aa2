"""cardsync prices a seller's inventory: it imports the CSV, matches the cards, applies the seller's
rules, and exports the price file.
"""

__version__ = "0.1.0"
