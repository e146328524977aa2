"""Market evidence: observed sales, listings and prices, and the verdicts based on them."""
