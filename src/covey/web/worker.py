"""One release in a process of its own: reads an order, does it, and tells its stages line by line on standard output."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from covey.errors import CoveyError, CoveyWarning
from covey.progress import listening
from covey.web.folders import hold
from covey.web.jobs import open_gate
from covey.workflow import AnonymousOrder, Released, anonymize, from_words, release, resume

PAUSE = 0.1  # seconds between two reports of the same stage


class Reporter:
    """Speaks to the server. Before the charge a server that is gone ends the process; after it the job goes on alone."""

    def __init__(self, gate: Path) -> None:
        self._gate, self._decided, self._last = gate, False, 0.0

    def say(self, **facts: Any) -> None:
        """One line."""
        try:
            sys.stdout.write(json.dumps(facts, ensure_ascii=True) + "\n")
            sys.stdout.flush()
        except OSError:
            if not self._decided:
                sys.exit(0)

    def stage(self, name: str) -> None:
        """A stage begins; what is not charged can be cancelled until it is written."""
        if name == "writing":
            self.decide()
        self.say(stage=name)

    def decide(self) -> None:
        """Take the decision to go ahead, or end if the steward has said no before."""
        if self._decided:
            return
        if not open_gate(self._gate, "go"):
            sys.exit(0)
        self._decided = True
        self._held = self._gate.open("rb")
        hold(self._held)  # as long as this process lives: a new start of the app leaves its table alone

    def share(self, done: float, _: str) -> None:
        """How far the fit has come."""
        if monotonic() - self._last > PAUSE:
            self._last = monotonic()
            self.say(share=round(done, 3))


def carry_out(words: dict[str, Any], reporter: Reporter) -> Released:
    """The same path as the command line's."""
    if "resume" in words:
        return resume(Path(words["resume"]))
    order = from_words(words)
    if isinstance(order, AnonymousOrder):
        return anonymize(order, reporter.stage)
    return release(order, reporter.stage, reporter.decide)


def main(place: str) -> None:
    """Read the order and do it. Every end is told in words; none shows a traceback."""
    job = json.loads(Path(place).read_text(encoding="utf-8"))
    reporter = Reporter(Path(job["gate"]))
    with warnings.catch_warnings(record=True) as caught, listening(reporter.share):
        warnings.simplefilter("always", CoveyWarning)
        try:
            done = carry_out(job["order"], reporter)
        except CoveyError as error:
            reporter.say(error=str(error))
        except OSError as error:
            reporter.say(error=f"{error.strerror or 'The disk cannot be used'}.")
        except MemoryError:
            reporter.say(error="This machine has too little memory for this table.")
        except Exception as error:  # its text might hold a value: only its kind is told
            reporter.say(error=f"The release failed inside covey ({type(error).__name__}). Please report this.")
        else:
            advice = [str(w.message) for w in caught if issubclass(w.category, CoveyWarning)]
            reporter.say(advice=list(dict.fromkeys(advice)), done={**asdict(done), "bundle": str(done.bundle)})


if __name__ == "__main__":
    main(sys.argv[1])
