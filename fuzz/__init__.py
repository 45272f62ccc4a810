"""Fuzzing with atheris: `make fuzz`."""
