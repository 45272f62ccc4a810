"""What a ledger accepts, refuses and shows, in any order of openings, charges and releases; a small model says what is right."""

import os
import random
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, exp, floor
from pathlib import Path

import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from covey.engine.budget import make_budget
from covey.engine.gaussian import delta_above, rho_of_pure, rho_within
from covey.errors import LedgerError, ParameterError, UnknownDatasetError
from covey.ledger import Amount, DatasetStatus, Ledger

DELTA, STEP = Fraction(1, 10**9), Fraction(1, 10**9)
NANO, ATTO, QUECTO = 10**9, 10**18, 10**30
ADDED, REPLACED = "add-or-remove-one", "replace-one"
# Caps that a few charges reach exactly, and digits that are cut off or rounded up.
EPSILONS = [Fraction(x) for x in ("1/1000000000000", "1/100", "1/10", "1/3", "1/2", "9/10", "1", "3/2")]
DELTAS = [Fraction(x) for x in ("1e-30", "1e-9", "1/3000000000", "4e-7", "1e-6")]
CAP_EPSILONS, CAP_DELTAS = ("1", "3", "2.0000000001"), ("1e-6", "1/999999", "1e-3", "0")
WAYS, NEIGHBOURS = (None, "sum", "gaussian"), (REPLACED, REPLACED, REPLACED, ADDED)
KINDS, ROWS = ("pure", "gaussian", "other"), (1, 1, 1, 10, "all")
CAPS = [
    (Fraction(epsilon), Fraction(delta), way, neighbours)
    for epsilon, delta, way, neighbours in product(CAP_EPSILONS, CAP_DELTAS, WAYS, NEIGHBOURS)
]
WRONG_RECEIPTS = ({"hash": "0" * 64}, {"sequence": 0}, {"sequence": 999})  # counting back from the end is not asked for
WHOM = {
    1: "one row",
    9: "up to 9 rows",
    10: "up to 10 rows",
    10**9: f"up to {10**9} rows",
    "all": "a person with all rows",
}
NAMES = st.sampled_from(["people", "people", "visits"])


def up(epsilon, delta):
    return Amount(ceil(epsilon * NANO), ceil(delta * ATTO))


class Kept:
    """One dataset of the model: its cap, and a list of what was charged. Everything is computed anew from the list."""

    def __init__(self, epsilon, delta, way, neighbours):
        self.cap, self.neighbours = (floor(epsilon * NANO), floor(delta * ATTO)), neighbours
        self.way, self.rows, self.charges = way or (None if delta else "sum"), None, []

    def counted(self, epsilon, delta, rho, neighbours):
        """ε, δ and ρ in whole units; a replaced row is one removed and one added."""
        cost = [ceil(epsilon * NANO), ceil(delta * ATTO), None if rho is None else ceil(rho * QUECTO)]
        if neighbours != self.neighbours:
            cost = [2 * cost[0], ceil(cost[1] * (1 + exp(cost[0] / NANO))), None if rho is None else 4 * cost[2]]
        if rho is None and not delta:
            cost.append(ceil(rho_of_pure(Fraction(cost[0], NANO)) * QUECTO))
        return cost

    def refusal(self, epsilon, delta, rho, rows, neighbours):
        """Words of the refusal, with its arithmetic and the way out; None where there is none."""
        if (self.neighbours, neighbours) == (ADDED, REPLACED):
            return r"would publish that number\. Nothing was charged; release with neighbours = add-or-remove-one\.$"
        if self.rows is not None and rows != self.rows and ("all" in (rows, self.rows) or rows < self.rows):
            units = f"is kept for {WHOM[self.rows]}, and this release protects {WHOM[rows]}"
            return rf"{units}: the two do not add up.*Nothing was charged"
        way = self.way or ("sum" if rho is None else "gaussian")
        if way == "gaussian" and rho is None and delta:
            return r"is counted by μ², and this release has none: .* Nothing was charged; .*, or release with δ = 0\.$"
        cost = self.counted(epsilon, delta, rho, neighbours)
        if self.holds([*self.charges, cost], way):
            return None
        twice = (
            rf"^For replaced rows {up(epsilon, delta)} counts as .*: a replacement is a removal and an addition\. .*"
        )
        begin = (twice if neighbours != self.neighbours else "") + r"does not cover this\. "
        if way == "gaussian":
            kind = r", as every pure ε = \S+ does" if cost[1] == 0 else ""
            return (
                begin
                + rf"It is counted by μ²\. .* which counts as μ² = \S+{kind}\. Nothing was charged; ask for at most"
            )
        asked = up(epsilon, delta) if neighbours == self.neighbours else ".*"
        sums = rf"Budget: {Amount(*self.cap)}\. Spent: .* Remaining: .* Asked: {asked}\."
        return begin + rf"ε and δ add up\. {sums} Nothing was charged\. Ask for no more than remains\.$"

    def holds(self, charges, way):
        """Sums of whole numbers, or the δ of all μ² together; pure charges alone may add up where μ² is counted."""
        sums = all(sum(c[i] for c in charges) <= self.cap[i] for i in (0, 1))
        if way == "sum" or (sums and not any(c[1] for c in charges)):
            return sums
        rho, epsilon, delta = sum(c[-1] for c in charges), Fraction(self.cap[0], NANO), Fraction(self.cap[1], ATTO)
        found = rho <= ceil(rho_within(epsilon, delta) * QUECTO)  # cut to 40 binary digits
        return found and delta_above(Fraction(rho, QUECTO), epsilon) <= delta


class AnyOrder(RuleBasedStateMachine):
    @initialize(cap=st.sampled_from(CAPS))
    def begin(self, cap):
        # In memory where there is such a folder: each charge waits for the disk.
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.ledger = Ledger(Path(self.folder.name) / "new" / "ledger.sqlite")
        self.kept, self.events, self.released = {}, [], set()
        self.open("people", cap)

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(name=NAMES, cap=st.sampled_from(CAPS))
    def open(self, name, cap):
        """Once and for all: the same again changes nothing, and anything else is refused."""
        if name in self.kept:
            self.open_again(name, self.kept[name])
        elif cap[2] == "gaussian" and not cap[1]:
            with pytest.raises(ParameterError, match="needs a positive delta_budget"):
                self.ledger.open_dataset(name, *cap)
        else:
            self.ledger.open_dataset(name, *cap)
            self.kept[name] = Kept(*cap)
            self.events.append((name, "open", Amount(*self.kept[name].cap), None, None, self.kept[name].way))
            self.left(name, False)

    def open_again(self, name, kept):
        before = self.ledger.path.read_bytes()
        epsilon, delta = Fraction(kept.cap[0], NANO), Fraction(kept.cap[1], ATTO)
        for way in (None, kept.way):
            self.ledger.open_dataset(name, epsilon, delta, way, kept.neighbours)
        for what, other in {
            "a budget of": (epsilon + 1, delta, None, kept.neighbours),
            r"a budget of \S": (epsilon, delta + STEP, None, kept.neighbours),
            "neighbours": (epsilon, delta, None, ADDED if kept.neighbours == REPLACED else REPLACED),
            "charges counted": (epsilon, delta, "gaussian" if kept.way == "sum" else "sum", kept.neighbours),
        }.items():
            with pytest.raises(
                (LedgerError, ParameterError), match=rf"open with {what} .*; that is final|positive delta"
            ):
                self.ledger.open_dataset(name, *other)
        assert self.ledger.path.read_bytes() == before

    @rule(name=NAMES, seed=st.integers(0, 2**32))
    def charge(self, name, seed):
        """Eight charges, all kinds alike: hypothesis alone would repeat a few."""
        g = random.Random(f"{seed}, {len(self.events)}")
        for _ in range(8):
            epsilon, delta, kind, rows, neighbours = map(g.choice, (EPSILONS, DELTAS, KINDS, ROWS, NEIGHBOURS))
            rho = rho_within(epsilon, delta) if kind == "gaussian" else None
            self.pay(name, epsilon, delta if kind != "pure" else Fraction(0), rho, rows, neighbours)
        self.left(name, False)

    def pay(self, name, epsilon, delta, rho, rows, neighbours):
        options = {"rows_per_person": rows, "rho": rho, "neighbours": neighbours}
        kept = self.kept.get(name)
        words = kept.refusal(epsilon, delta, rho, rows, neighbours) if kept else f"has no dataset '{name}'"
        if words:
            said = []
            for door in (self.ledger.check, lambda *cost, **rest: self.ledger.charge(*cost, "p", **rest)):
                with pytest.raises(LedgerError if kept else UnknownDatasetError, match=words) as refusal:
                    door(name, epsilon, delta, **options)
                said.append(str(refusal.value))
            assert said[0] == said[1]
            if "add up. Budget" in said[0]:
                (status,) = (s for s in self.ledger.datasets() if s.name == name)
                assert f"Spent: {status.spent}. Remaining: {status.remaining}. Asked" in said[0]
            return
        self.ledger.check(name, epsilon, delta, **options)
        receipt = self.ledger.charge(name, epsilon, delta, f"purpose {len(self.events)}", **options)
        kept.way, kept.rows = kept.way or ("sum" if rho is None else "gaussian"), kept.rows or rows
        kept.charges.append(kept.counted(epsilon, delta, rho, neighbours))
        self.events.append((name, "charge", up(epsilon, delta), receipt.purpose, rows, kept.way))
        assert receipt == self.ledger.history(name)[-1]
        assert receipt.quecto_rho == (None if rho is None else ceil(rho * QUECTO))

    @rule(at=st.integers(0, 9))
    def release(self, at):
        """Each charge pays for one bundle; receipts of anything else pay for none."""
        found = [event for name in self.kept for event in self.ledger.history(name)]
        if not found:
            return
        event = found[at % len(found)]
        for wrong in (
            *(replace(event, **wrong) for wrong in WRONG_RECEIPTS),
            *(own for own in found if own.kind != "charge"),
        ):
            with pytest.raises(
                LedgerError, match=r"no charge with this receipt \(event \d+\)\. Use the ledger that was "
            ):
                self.ledger.mark_released(wrong, "one")
        if event.kind == "charge":
            if event.sequence not in self.released:
                self.released.add(event.sequence)
                self.events.append((event.dataset, "release", Amount(), None, None, None))
            for _ in range(2):
                self.ledger.mark_released(event, "one")
            with pytest.raises(
                LedgerError, match=r"paid for the bundle one\. A further release needs a charge of its own\.$"
            ):
                self.ledger.mark_released(event, "another")
            paid = [(own.charge, own.digest) for own in self.ledger.history(event.dataset) if own.kind == "release"]
            assert paid.count((event.sequence, "one")) == 1

    @rule(name=NAMES, pays=st.sampled_from([False, False, True]))
    def left(self, name, pays):
        """What is said to be left, pure or with a δ, is accepted to the last nano-ε; one more is not."""
        if name not in self.kept:
            return
        kept, (status,) = self.kept[name], (s for s in self.ledger.datasets() if s.name == name)
        rows = kept.rows or 1
        for fewer in (1, 9, 10**9):
            words = kept.refusal(STEP, Fraction(0), None, fewer, kept.neighbours)
            with pytest.raises(LedgerError, match=words) if words else nullcontext():
                status.after(STEP, Fraction(0), fewer, None, kept.neighbours)
        for delta in (Fraction(0), DELTA, status.remaining.delta):
            largest = status.left(delta)
            for epsilon, fits in ((largest + STEP, False), (largest, True)):
                rho = rho_within(epsilon, delta) if delta and epsilon else None
                with nullcontext() if fits else pytest.raises(LedgerError, match="does not cover this"):
                    status.after(epsilon, delta, rows, rho, kept.neighbours) if epsilon else None
        if pays and largest:
            self.pay(name, largest, delta, rho, rows, kept.neighbours)

    @invariant()
    def shows(self):
        """Read anew, the file says what the model does; what is spent is a promise that holds, within the cap."""
        if not hasattr(self, "ledger"):
            return
        shown = Ledger(self.ledger.path).datasets()
        assert [status.name for status in shown] == list(self.kept)
        for status, kept in zip(shown, self.kept.values(), strict=True):
            assert (status.budget, status.neighbours) == (Amount(*kept.cap), kept.neighbours)
            assert (status.composition, status.rows_per_person) == (kept.way, kept.rows)
            assert status.charges == len(kept.charges)
            assert status.spent.within(status.budget)
            assert 0 <= status.used <= 1
            nano, atto = (sum(charge[i] for charge in kept.charges) for i in (0, 1))
            rho = sum(charge[-1] for charge in kept.charges) if kept.way == "gaussian" else 0
            assert status.quecto_rho == rho
            if kept.way == "gaussian" and (atto or nano > kept.cap[0]):
                assert delta_above(Fraction(rho, QUECTO), status.spent.epsilon) <= status.spent.delta
                assert status.spent.nano_epsilon
            else:
                assert status.spent.nano_epsilon == nano
                assert 0 <= status.spent.atto_delta - atto <= 2e-9 * atto  # e^ε is rounded up
            if kept.way != "gaussian":
                assert status.remaining == status.budget - status.spent
            wanted = [event[1:] for event in self.events if event[0] == status.name]
            found = self.ledger.history(status.name)
            assert wanted == [(e.kind, e.amount, e.purpose, e.rows_per_person, e.composition) for e in found]
        self.ledger.verify()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=80, stateful_step_count=8, derandomize=True)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.sqlite")
    made.open_dataset("people", Fraction(3), Fraction(1, 10**6))
    return made


def test_google_agrees_that_the_cap_is_kept(ledger):
    half, count = Fraction(1, 2), 0
    rho, (status,) = rho_within(half, DELTA), ledger.datasets()
    while status.left(DELTA) >= half:
        status, count = status.after(half, DELTA, 1, rho), count + 1
    with pytest.raises(
        LedgerError, match=r"Budget: ε = 3, δ = 1e-6, which is μ² = 0\.41955\. Spent: μ² = 0\.\d+\. Asked"
    ):
        status.after(half, DELTA, 1, rho)
    assert count > 15  # their ε add up to more than twice the cap
    one = from_gaussian_mechanism(float(1 / (2 * rho)) ** 0.5, value_discretization_interval=1e-3)
    assert one.self_compose(count).get_epsilon_for_delta(1e-6) <= 3.01
    assert one.self_compose(2 * count).get_epsilon_for_delta(1e-6) > 3.5


def test_a_cap_far_from_sense_is_counted_all_the_same(tmp_path):
    for place, (epsilon, delta) in enumerate([(10**8, 0.999999), (1e-6, 1e-12), (1e-9, 0.999999)]):
        book = Ledger(tmp_path / f"{place}.sqlite")
        cap = Fraction(repr(epsilon)), Fraction(repr(delta))
        book.open_dataset("people", *cap, "gaussian")
        (found,) = book.datasets()
        assert found.left(Fraction(0)) >= cap[0]  # a δ near 1 lets through more than its ε says
        assert found.after(cap[0], min(cap[1], Fraction(1, 2)), 1, rho_within(cap[0], min(cap[1], Fraction(1, 2))))


def test_charges_past_the_cap_are_found_when_the_file_is_read(ledger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(DatasetStatus, "within_cap", True)
        for _ in range(60):
            ledger.charge("people", Fraction(1), DELTA, "too many", rho=rho_within(Fraction(1), DELTA))
    with pytest.raises(LedgerError, match=r"event \d+ takes 'people' past its cap"):
        ledger.datasets()


def test_rho_is_rounded_up(ledger):
    ledger.charge("people", Fraction(1, 10**9), DELTA, "tiny", rho=Fraction(1, 3 * 10**30))
    (status,) = ledger.datasets()
    assert (status.quecto_rho, status.spent.nano_epsilon) == (1, 1)  # a charge is never shown as nothing


def test_a_budget_says_what_the_ledger_composes():
    gaussian = make_budget(1, 1e-9, rows_per_person=5)
    assert gaussian.gaussian_rho == gaussian.amount  # all rows of a person together
    assert make_budget(1).gaussian_rho is None


def test_the_square_of_mu_of_added_rows_counts_four_times_for_replaced_ones(ledger):
    rho = rho_within(Fraction(1, 2), DELTA)
    for neighbours in (ADDED, REPLACED):
        ledger.charge("people", Fraction(1, 2), DELTA, neighbours, rho=rho, neighbours=neighbours)
    assert ledger.datasets()[0].quecto_rho == 5 * ceil(rho * QUECTO)
