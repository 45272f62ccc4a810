"""Measurements with numbers: run as scripts, never as part of the tests."""
