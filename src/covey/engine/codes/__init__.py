"""Exact statistics of records, and how far two tables are apart."""
