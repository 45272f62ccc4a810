"""Mutants of what privacy rests on: `python -m trust.mutants [--sample N]`. Needs mutmut, which makes the mutants.

mutmut writes every mutant of src/covey/privacy and src/covey/core/noise.py (pyproject.toml) into mutants/. Each then meets
the tests of its own module, in a child forked from a process that has everything imported: mutmut's own runner would go
through all tests twice before the first mutant. A mutant is killed if a test fails, or if the tests run out of time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path

TESTS = {
    "covey.core.noise": ["tests/core/test_noise.py"],
    "covey.privacy.bounds": ["tests/privacy/test_bounds.py"],
    "covey.privacy.budget": ["tests/privacy/test_budget.py"],
    "covey.privacy.certificate": ["tests/privacy/test_certificate.py"],
    "covey.privacy.ledger": ["tests/privacy/test_ledger.py"],
}
# Tests that wait, start processes or draw for long, and that find nothing in one module that the others do not.
LEFT_OUT = (
    "kills_at_random_moments or crowd_of_processes or opendp or both_sources or damaged_bytes "
    "or lock_is_waited_for or will_not_leave or threads_that_open or death_around_the_commit"
)
CPU_SECONDS, WALL_SECONDS = 120, 900


def generate():
    """Every mutant, in mutants/, by name."""
    from mutmut import __main__ as mutmut
    from mutmut.mutation.trampoline import set_mutant_under_test

    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.setup_source_paths()
    mutmut.create_mutants(1)
    names = []
    for path in Path("mutants").rglob("*.meta"):
        names += json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return sorted(names)


def module_of(name):
    """The module a mutant belongs to; methods are named by their class."""
    return next(module for module in TESTS if name.startswith(module + "."))


def meet(name, module):
    """Run the tests of a module against a mutant, or against none; whether they pass."""
    process = os.fork()
    if not process:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        signal.alarm(WALL_SECONDS)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.environ["MUTANT_UNDER_TEST"] = name
        import pytest

        words = ["-x", "-n0", "-pno:cacheprovider", "-k", f"not ({LEFT_OUT})", *TESTS[module]]
        os._exit(int(pytest.main(words)))
    _, status = os.waitpid(process, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def main(arguments=None):
    """Make mutants, let them meet the tests, and fail if less than 85% are killed."""
    parser = argparse.ArgumentParser(prog="python -m trust.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="how many mutants of each module to try (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modules", nargs="+", choices=list(TESTS), default=list(TESTS))
    options = parser.parse_args(arguments)
    names = [name for name in generate() if module_of(name) in options.modules]
    os.chdir("mutants")
    sources = str(Path("src").absolute())
    sys.path[:] = [sources, *(path for path in sys.path if Path(path or ".").absolute() != Path("../src").absolute())]
    os.environ["PYTHONPATH"] = os.pathsep.join([sources, os.environ.get("PYTHONPATH", "")])
    os.environ["MUTANT_UNDER_TEST"] = ""
    import dp_accounting  # noqa: F401 - so that no child has to
    import scipy.stats  # noqa: F401

    import covey

    assert covey.__file__.startswith(sources), covey.__file__
    stream, tried, lived = random.Random(options.seed), Counter(), []
    for module in options.modules:
        assert meet("", module), f"the tests of {module} fail without a mutant"
        mine = [name for name in names if module_of(name) == module]
        total = len(mine)
        if options.sample is not None:
            mine = stream.sample(mine, min(options.sample, total))
        begin = time.monotonic()
        for name in mine:
            alive = meet(name, module)
            lived += [name] * alive
            tried[module] += 1
            print(f"{'lives' if alive else 'killed'}: {name}", flush=True)
        dead = tried[module] - sum(module_of(name) == module for name in lived)
        print(
            f"{module}: {dead} of {tried[module]} killed ({total} mutants; {time.monotonic() - begin:.0f} s)",
            flush=True,
        )
    share = 1 - len(lived) / tried.total()
    print(f"{tried.total() - len(lived)} of {tried.total()} killed: {share:.1%}")
    return 0 if share >= 0.85 else 1


if __name__ == "__main__":
    sys.exit(main())
