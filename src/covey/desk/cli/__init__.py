"""The command line: from a table to a release that cannot leak by accident.

Exit codes: 0 done; 2 a public parameter is wrong, no data was opened, nothing was charged; 3 the table cannot be read as the
schema says, nothing was charged; 4 the ledger refuses; 5 a release failed after its charge, which stays. Heavy imports
happen inside commands, so that `covey --help` is quick. What a command does is in covey.workflow; here are its words.
"""

from covey.desk.cli.group import main  # isort: skip  # first: it says what to install where click is missing
from covey.desk.cli import app, bundle, ledger, release, schema

__all__ = ["app", "bundle", "ledger", "main", "release", "schema"]
