"""Recommendations that the service makes from market evidence, and what became of them."""
