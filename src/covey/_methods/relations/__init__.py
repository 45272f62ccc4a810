"""Relations between columns, found with noise."""
