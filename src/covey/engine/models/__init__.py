"""Models: each module reads like the algorithm that it implements."""
