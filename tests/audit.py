"""Frequency audits: a lower bound, with confidence, on the ε that a mechanism really has."""

from audits.statistics import epsilon_lower_bound

__all__ = ["epsilon_lower_bound"]
