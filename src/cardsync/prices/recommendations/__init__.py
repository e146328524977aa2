"""Recommendations that the service makes from market evidence, and their outcomes."""
