"""Random releases, each taken its whole way: `python -m fuzz releases --runs 5000 --seed 0`.

Finds are printed with their seed, and `--seed N --runs 1` shows one again. At the end everything that is named must have been
reached by an accepted release, and every kind of question answered.
"""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.arrays import ARRAYS
from fuzz.cases import RULES, TYPES
from fuzz.journey import BESIDE_RELATIONS, Find, clean, travel
from fuzz.names import ALL, EMPTY
from fuzz.orders import EXPECTED, KINDS, LINKS, OPTIONS, TIES
from fuzz.questions import KINDS as QUESTIONS
from fuzz.questions import LINKED_KINDS

NAMED = {
    *(f"kind {kind}" for kind in KINDS),
    *(f"type {kind}" for kind in TYPES),
    *(f"array {kind}" for kind in ARRAYS),
    *(f"rule {kind}" for kind in (*RULES, "one_of")),
    *(f"field {tie}" for tie in (*TIES, *EXPECTED, "required")),
    *(f"option {option}" for option in OPTIONS),
    *(f"linked {word}" for word in LINKS),
    *(f"question {kind}" for kind in (*QUESTIONS, *LINKED_KINDS)),
    *(f"name {name!r}" for name in (*ALL, EMPTY)),
    *("found relations", *(f"found relations beside {what}" for what in BESIDE_RELATIONS)),
    *("step tables", "step sample where", "step resume", "step evaluate", "step anonymize"),
}


@dataclass
class Tally:
    """What many journeys met."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    by_seed: dict[int, set[str]] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)  # by their first words, without names and numbers
    finds: dict[int, str] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, -1)

    @property
    def unreached(self) -> list[str]:
        """What no accepted release had."""
        return sorted(NAMED - set(self.reached))

    @property
    def cover(self) -> list[int]:
        """Few seeds that reach all that was reached: for a test."""
        left, chosen = NAMED & set(self.reached), []
        while left:
            best = max(self.by_seed, key=lambda seed: len(self.by_seed[seed] & left))
            chosen.append(best)
            left -= self.by_seed[best]
        return sorted(chosen)


def explore(seeds: Iterable[int], log: Path | None = None) -> Tally:
    """Take the case of every seed on its way."""
    tally, memory = Tally(), Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        for seed in seeds:
            folder, begin = Path(place) / "case", time.process_time()
            clean(folder)
            try:
                journey = travel(seed, folder)
            except Find as find:
                tally.outcomes["find"] += 1
                tally.finds[seed] = "".join(traceback.format_exception(find))
                _note(log, f"=== seed {seed}\n{tally.finds[seed]}")
                continue
            tally.outcomes[journey.outcome] += 1
            if journey.reason:
                words = re.sub(r"'[^']*'|[\d.,%]+", "", journey.reason.removeprefix("covey: ")).split()
                tally.refusals[" ".join(words[:7])] += 1
            tally.by_seed[seed] = journey.reached | {f"question {kind}" for kind in +journey.answered}
            tally.reached.update(tally.by_seed[seed])
            tally.slowest = max(tally.slowest, (time.process_time() - begin, seed))
            if seed % 100 == 99:
                _note(log, f"--- up to seed {seed}: {dict(tally.outcomes)}, slowest {tally.slowest}")
                _note(log, f"    {tally.refusals.most_common(25)}")
    return tally


def _note(log: Path | None, words: str) -> None:
    if log is None:
        print(words, flush=True)
        return
    with log.open("a", encoding="utf-8") as file:
        file.write(words + "\n")


def main(runs: int, seed: int, log: Path | None = None) -> int:
    """Explore, tell, and say whether all is well."""
    tally = explore(range(seed, seed + runs), log)
    for name in sorted(NAMED):
        print(f"{tally.reached[name]:7} {name}")
    print(f"{dict(tally.outcomes)}; slowest {tally.slowest[0]:.1f} s, seed {tally.slowest[1]}")
    for words, count in tally.refusals.most_common():
        print(f"{count:7} refused: {words} …")
    print(f"finds: {', '.join(map(str, tally.finds)) or 'none'}")
    print(f"never reached: {', '.join(tally.unreached) or 'nothing'}")
    print(f"seeds that reach all the others: {', '.join(map(str, tally.cover))}")
    return bool(tally.finds or tally.unreached)
