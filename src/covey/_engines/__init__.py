"""Engines bring the rows: no mathematics and no randomness."""
