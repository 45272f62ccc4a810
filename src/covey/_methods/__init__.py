"""Methods compose the core; each module reads like the algorithm it implements."""
