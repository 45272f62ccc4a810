"""`python -m covey.cli` is `covey`."""

from covey.cli.family import main

main()
