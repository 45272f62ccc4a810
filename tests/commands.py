"""The command line, in this process."""

import shlex

from click.testing import CliRunner

from covey.cli import main


def run(*words, **environment):
    """What a command ends with: one line of words, or its words one by one."""
    line = shlex.split(words[0]) if len(words) == 1 else [str(word) for word in words]
    return CliRunner().invoke(main, line, env=environment)
