"""Post-processing: from noisy measurements to centres."""
