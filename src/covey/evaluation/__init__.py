"""A bundle beside the true table: for the eyes of its owner alone, since nothing here is private."""
