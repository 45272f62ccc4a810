"""Groups of similar rows, for the anonymous mode."""
