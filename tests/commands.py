"""The command line, in this process."""

import json
import shlex

from click.testing import CliRunner

from covey.desk.cli import main


def run(*words, **environment):
    """What a command ends with: one line of words, or its words one by one."""
    line = shlex.split(words[0]) if len(words) == 1 else [str(word) for word in words]
    return CliRunner().invoke(main, line, env=environment)


def ok(*words):
    """A command that ends well."""
    done = run(*words)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done


def told(*words):
    """What a command says that ends well."""
    return ok(*words).output


def spent():
    """The ε that the first dataset of the ledger has spent."""
    return json.loads(told("ledger show --json"))[0]["spent"]
