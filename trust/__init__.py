"""Tools that try to break covey: kills at random moments, attacks on releases, mutants of the code. `make trust` runs them."""
