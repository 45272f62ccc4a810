"""Queries of units, and measurements: their noisy values and the law of the noise."""
