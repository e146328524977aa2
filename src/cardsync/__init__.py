"""cardsync: inventory CSV in, matched, priced by the seller's rules, price-updates CSV out."""

__version__ = "0.1.0"
