"""`python -m covey.cli` is `covey`."""

from covey.cli.group import main

main()
