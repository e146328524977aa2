"""Market evidence: observed sales, listings and prices, and the verdicts that they support."""
