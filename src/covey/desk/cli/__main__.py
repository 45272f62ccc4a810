"""`python -m covey.desk.cli` is `covey`."""

from covey.desk.cli.group import main

main()
