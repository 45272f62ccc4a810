"""Mutants of what privacy rests on: `python -m trust.mutants [--sample N]`. Needs mutmut, which makes the mutants.

mutmut writes every mutant of the files that pyproject.toml names into mutants/. Each then
meets the tests of its own module, in a child forked from a pytest that has collected them: mutmut's own runner would go through
all tests twice before the first mutant. A mutant is killed if a test fails, or if the tests run out of time; those that ran
out of time, which is processor time, are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

TESTS = {
    "covey.engine.noise.directions": ["tests/engine/noise/test_bingham.py"],
    "covey.engine.noise.integers": [
        "tests/engine/noise/test_gaussian.py",
        "tests/engine/noise/test_gumbel.py",
        "tests/engine/noise/test_integers.py",
        "tests/engine/noise/test_knorm.py",
        "tests/engine/test_refusals.py",
    ],
    "covey.engine.noise.law": [
        "tests/engine/test_gate.py",
        "tests/engine/test_certificate.py",
        "tests/engine/noise/test_pairlaw.py",
    ],
    "covey.engine.noise.matrix": [
        "tests/engine/noise/test_matrix.py",
        "tests/engine/noise/test_signs.py",
        "tests/engine/test_refusals.py",
    ],
    "covey.engine.noise.normals": ["tests/engine/noise/test_chi.py", "tests/engine/noise/test_normals.py"],
    "covey.engine.noise.pairlaw": ["tests/engine/noise/test_pairlaw.py", "tests/engine/noise/test_pairlaw.py"],
    "covey.engine.noise.sensitivity": ["tests/engine/noise/test_sensitivity.py", "tests/engine/noise/test_persons.py"],
    "covey.paper.bounds": ["tests/paper/test_bounds.py"],
    "covey.engine.budget": ["tests/engine/test_budget.py", "tests/engine/test_selection.py"],
    "covey.engine.certificate": ["tests/engine/test_certificate.py"],
    "covey.engine.exact": ["tests/engine/test_gate.py", "tests/engine/test_pure.py"],
    "covey.engine.gate": ["tests/engine/test_gate.py", "tests/engine/test_selection.py"],
    "covey.engine.gaussian": ["tests/engine/test_gaussian.py"],
    "covey.ledger": ["tests/ledger/test_ledger.py", "tests/ledger/test_status.py"],
    "covey.engine.sensitivity": ["tests/engine/test_gate.py", "tests/synthesizers/test_neighbours.py"],
    "covey.engine.unit": ["tests/ledger/test_status.py"],
}
# Tests that wait, start processes or draw for long, and that find nothing in one module that the others do not.
LEFT_OUT = (
    "kills_at_random_moments or crowd_of_processes or damaged_bytes or lock_is_waited_for or will_not_leave "
    "or threads_that_open or death_around_the_commit or touches_the_inside"
)
# Processor seconds that a test may take with a mutant: so many times what it takes without, and so many more.
TIMES, MORE = 10, 2


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


class Mutants:
    """A plugin that, instead of running the collected tests once, runs them in a child for every mutant."""

    def __init__(self, names):
        self.names, self.ends, self.seconds = names, {}, Counter()
        self.usual = {}

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        assert session.items, "no tests"
        assert self.child(session, "", "seconds.json") == "lives", "tests fail without a mutant"
        self.usual = json.loads(Path("seconds.json").read_text(encoding="utf-8"))
        session.items.sort(key=lambda item: self.usual[item.nodeid])  # a quick test may save a slow one
        for name in self.names:
            self.ends[name] = self.child(session, name)
            print(f"{self.ends[name]}: {name}", flush=True)
        return True

    def child(self, session, name, times=None):
        """How the tests end with a mutant, or with none."""
        process = os.fork()
        if not process:
            os.environ["MUTANT_UNDER_TEST"] = name
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            for item, after in zip(session.items, [*session.items[1:], None], strict=True):
                signal.setitimer(signal.ITIMER_PROF, TIMES * self.usual.get(item.nodeid, 60) + MORE)
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.testsfailed:
                    break
            if times:
                Path(times).write_text(json.dumps(self.seconds), encoding="utf-8")
            os._exit(session.testsfailed > 0)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            return "out of time"
        return "lives" if status == 0 else "killed"


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
    import covey

    assert covey.__file__.startswith(sources), covey.__file__
    stream, ends = random.Random(options.seed), Counter()
    for module in options.modules:
        mine = [name for name in names if module_of(name) == module]
        total = len(mine)
        if options.sample is not None:
            mine = stream.sample(mine, min(options.sample, total))
        plugin, begin = Mutants(mine), time.monotonic()
        left_out = LEFT_OUT
        words = ["-s", "-pno:cacheprovider", "-k", f"not ({left_out})", *TESTS[module]]
        # Every mutated function reaches a dictionary of mutants, which the look at kernels refuses: only its own tests look.
        unseen = nullcontext() if module == "covey.engine.exact" else patch("covey.engine.exact._check")
        with unseen:
            code = pytest.main(words, plugins=[plugin])
        assert code == 0, f"the tests of {module} could not be run: {code}"
        assert len(plugin.ends) == len(mine), f"{module}: not every mutant was tried"
        own = Counter(plugin.ends.values())
        ends += own
        print(
            f"{module}: {len(mine) - own['lives']} of {len(mine)} killed, {own['out of time']} of them by time "
            f"({total} mutants; {time.monotonic() - begin:.0f} s)",
            flush=True,
        )
    share = 1 - ends["lives"] / ends.total()
    print(
        f"{ends.total() - ends['lives']} of {ends.total()} killed: {share:.1%}; {ends['out of time']} of them by time"
    )
    return 0 if share >= 0.85 else 1


if __name__ == "__main__":
    sys.exit(main())
