"""Noise: who draws it, its laws, and how far one replaced row can move a statistic."""
