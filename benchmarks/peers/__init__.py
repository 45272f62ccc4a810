"""covey beside other packages from PyPI, each in an environment and a process of its own."""
