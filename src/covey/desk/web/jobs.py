"""Releases under way, each in a process of its own that goes the same path as the command line.

Before the charge a job can be cancelled, and after it never: a file, the gate, decides the race. Whoever creates it first
has decided, the worker with "go" or the steward with "cancel". A worker tells its stages line by line on standard output. One
whose server has died stops before the charge and carries on after it, because what was paid for should be written. If a worker
dies, the ledger says what was charged. How long it will still take is what was expected of its stages, corrected by how fast
it has been so far.
"""

from __future__ import annotations

import json
import secrets
import subprocess  # nosec B404 # one fixed command, without a shell
import sys
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock, Semaphore
from time import monotonic
from typing import Any, Literal

from covey.desk.web.folders import hold
from covey.engine.progress import listening
from covey.errors import CoveyError, CoveyWarning
from covey.ledger import Ledger
from covey.release.places import SUMS, private_file
from covey.workflow import CHARGE_STAYS, STAGES, AnonymousOrder, anonymize, from_words, release, resume

State = Literal["waiting", "running", "done", "failed", "cancelled"]
TRUSTED = 0.15  # of the work, after which the machine's own pace counts and the expected one does not
MOST = 0.99  # of the bar, while it is not over
PAUSE = 0.1  # seconds between two reports of a worker on the same stage


def anonymous_seconds(cells: int) -> dict[str, float]:
    """Of an anonymous release of a table with so many cells (docs/benchmarks/growth.md)."""
    return {"checking": 2.0, "reading": 0.1 + 2e-7 * cells, "measuring": 1 + 6e-7 * cells, "writing": 1 + 2e-6 * cells}


def open_gate(gate: Path, word: str) -> bool:
    """Decide whether a job goes ahead, once; False if that is decided already."""
    try:
        with private_file(gate) as file:
            file.write(word)
    except FileExistsError:
        return False
    return True


@dataclass
class Job:
    """One release: what was ordered, how far it has come, and what became of it."""

    order: dict[str, Any]
    folder: Path
    names: dict[str, str] = field(default_factory=dict)  # private paths, and what people call them
    expected: dict[str, float] = field(default_factory=dict)  # seconds of its stages
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = "waiting"
    stage: str = ""
    share: float = 0.0
    message: str = ""
    advice: list[str] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=monotonic)
    started: float = 0.0  # when its process was: before, it waits for another one
    seconds: float = 0.0
    process: subprocess.Popen[str] | None = None
    lock: Lock = field(default_factory=Lock)

    @property
    def private(self) -> bool:
        """Whether the release is charged to the ledger."""
        return "epsilon" in self.order

    @property
    def gate(self) -> Path:
        """The file that decides between going ahead and cancelling."""
        return self.folder / f"{self.id}.gate"

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")

    @property
    def can_cancel(self) -> bool:
        """Whether cancelling still has a chance."""
        return not self.over and not self.gate.exists()

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages this job goes through."""
        return tuple(stage for stage in STAGES if self.private or stage != "charging")

    def expected_upto(self, share: float) -> float:
        """Expected seconds up to this share of its stage."""
        before = self.stages[: self.stages.index(self.stage)] if self.stage else ()
        return sum(self.expected[name] for name in before) + share * self.expected[self.stage or self.stages[0]]

    @property
    def done(self) -> float:
        """The part of the whole work that is done, 0 to 1."""
        return min(MOST, self.expected_upto(self.share) / sum(self.expected.values()))

    def left(self, now: float | None = None) -> float:
        """Seconds to go. A stage that tells no share, and one that takes longer than expected, still moves."""
        whole, done = sum(self.expected.values()), self.done
        past = (monotonic() if now is None else now) - self.started
        if done >= TRUSTED:
            return (1 - done) * past / done
        end = self.expected_upto(1.0)  # of this stage: if it is late, so will the others be
        pace = max(1.0, past / end)
        return max(whole * pace - past, (whole - end) * pace)

    @property
    def bundle(self) -> Path:
        """Where the bundle is, or will be."""
        return Path(self.order["out"])

    def cancel(self) -> bool:
        """Stop the job if it has not reached the charge; False if it is too late."""
        if self.over or not open_gate(self.gate, "cancel"):
            return self.state == "cancelled"
        with self.lock:
            self._end("cancelled", "Cancelled. Nothing was charged and nothing was written.")
            if self.process is not None:
                self.process.kill()
        return True

    def follow(self, slots: Semaphore) -> None:
        """Run as soon as there is room, whatever comes of it."""
        with slots:
            try:
                self.run()
            except Exception as error:  # a disk that is full, say
                with self.lock:
                    if not self.over:
                        self._end("failed", f"The release could not be followed ({type(error).__name__}).")

    def run(self) -> None:
        """Start the worker and follow it to its end."""
        with self.lock:
            if self.over:
                return
            self.state, self.started = "running", monotonic()
        before = self.bundle.exists()
        self._work(self.order)
        if not self.over and not before and (self.bundle / SUMS).is_file():
            # The process died when the data were written: what was paid for is there, and another one makes the report.
            self._work({"resume": str(self.bundle)})
        with self.lock:
            if not self.over:
                self._end("failed", self._readable("The release broke off: its process ended. No bundle was written."))

    def _work(self, order: dict[str, Any]) -> None:
        """Have a process carry out an order, and hear it to its end."""
        with self.lock:
            if self.over:
                return
            place = self.folder / f"{self.id}.json"
            with private_file(place, "w") as file:
                json.dump({"order": order, "gate": str(self.gate)}, file)
            # -P: a folder named like one of our imports, where covey was started, must not be run.
            self.process = subprocess.Popen(  # nosec B603 # our own worker, our own file name
                [sys.executable, "-P", "-m", "covey.desk.web.jobs", str(place)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # an interrupt in the terminal is for the server to handle
            )
        with self.process as process:
            assert process.stdout is not None  # nosec B101 # for the type checker; it was asked for
            for line in process.stdout:
                self._hear(json.loads(line))

    def _hear(self, said: dict[str, Any]) -> None:
        with self.lock:
            if self.over:
                return
            if "stage" in said:
                self.stage, self.share = said["stage"], 0.0
            self.share = said.get("share", self.share)
            self.advice += said.get("advice", [])
            if "done" in said:
                self.result = said["done"]
                self._end("done", "")
            if "error" in said:
                self._end("failed", self._readable(said["error"]))

    def _readable(self, words: str) -> str:
        """The message with names instead of private paths, and what it cost."""
        for path, name in self.names.items():
            words = words.replace(path, name)
        if not self.private or "othing was charged" in words or CHARGE_STAYS in words:
            return words
        try:  # before the gate it has cost nothing, after it the ledger is what counts
            events = Ledger(self.order["ledger"]).history(self.order["dataset"]) if self.gate.exists() else []
        except CoveyError as error:
            return f"{words} {error}"
        charged = any(event.purpose == self.order["purpose"] for event in events)
        return f"{words} {CHARGE_STAYS if charged else 'Nothing was charged.'}"

    def _end(self, state: State, message: str) -> None:
        self.state, self.message, self.seconds = state, message, monotonic() - self.begun


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


def main(place: str) -> None:
    """Read the order and do it, on the same path as the command line. Every end is told in words; none shows a traceback."""
    job = json.loads(Path(place).read_text(encoding="utf-8"))
    reporter = Reporter(Path(job["gate"]))
    with warnings.catch_warnings(record=True) as caught, listening(reporter.share):
        warnings.simplefilter("always", CoveyWarning)
        try:
            if "resume" in job["order"]:
                done = resume(Path(job["order"]["resume"]))
            elif isinstance(order := from_words(job["order"]), AnonymousOrder):
                done = anonymize(order, reporter.stage)
            else:
                done = release(order, reporter.stage, reporter.decide)
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
