"""The replay odometer: what a fit really spends, charge by charge, and whether anything leaves that was not paid for.

A fit is recorded: every value that passes the gate, exact and released. Then it is run on another table with the same releases
forced. For a neighbour the privacy loss of every charge is computed exactly from how far its statistics moved, and held to that
charge's own amount. For a neighbour or for a stranger, a table that has nothing in common with the first but its shape,
everything that leaves must be identical, byte for byte: files, rows, messages, warnings, log lines. All of it is a function of
the releases, so a choice that looked at exact values shows. No stream of noise is begun twice: it would be the same noise again.
A ride also proves what it exercises, and how much of which charges its neighbours show to be spent (`audits.evidence`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
from scipy.special import expit
from scipy.stats import norm

import covey.engine.driver
import covey.engine.fit.factors
import covey.engine.fit.reals
import covey.engine.gate
import covey.engine.models.bits
import covey.engine.models.tables.method
import covey.paper.reals
import covey.synthesizers.private
from audits import events
from audits.evidence import names_of_spending, unproven, unspent
from audits.faces import hearing, leaving
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.gaussian import rho_within
from covey.errors import CoveyError, InternalError

SLACK = 1e-9  # for the floating point of this file, relative


@dataclass
class Entry:
    """One passage through the gate."""

    line: object
    exact: np.ndarray
    released: np.ndarray
    weight: float
    block: tuple | None
    asker: str


@dataclass
class Named:
    """One column whose labels were named: exact counts by label, and what was released."""

    line: object
    exact: dict
    released: dict
    threshold: int
    asker: str
    weight: float = 1.0


@dataclass
class Tape:
    """All passages of one fit, through one gate or several, the weights of its matrix noise, and the budget of the first gate."""

    entries: list = field(default_factory=list)
    weights: dict = field(default_factory=dict)
    budget: object = None


class Diverged(Exception):
    """The second run asked for something else than the first: a choice depended on exact values."""


PASSING = {__file__, covey.engine.gate.__file__, covey.engine.driver.__file__}  # what is asked goes through these


def asker():
    """The function that asks the gate: the innermost one that does not pass on what another one asks."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in PASSING or frame.f_code.co_name == "_measure":
        frame = frame.f_back
    return frame.f_code.co_name


def recording_gate(tape):
    """A gate that writes everything down."""

    class Recording(Gate):
        def __init__(self, budget, *given):
            super().__init__(budget, *given)
            tape.budget = tape.budget or budget

        def _release(self, exact, noise, payment, weight, block=None):
            released = super()._release(exact, noise, payment, weight, block)
            tape.entries.append(Entry(payment, np.array(exact._sealed), released, float(weight), block, asker()))
            return released

        def _direct(self, exact, payment, t):
            released = super()._direct(exact, payment, t)
            tape.entries.append(Entry(payment, np.array(exact._sealed), released, 1.0, None, asker()))
            return released

        def _choose(self, exact, noise, payment, taken):
            released = super()._choose(exact, noise, payment, taken)
            tape.entries.append(Entry(payment, np.array(exact._sealed), released, 1.0, None, asker()))
            return released

        def _pick(self, exact, payment, open_):
            released = super()._pick(exact, payment, open_)
            tape.entries.append(Entry(payment, np.array(exact._sealed), released, 1.0, np.array(open_), asker()))
            return released

        def _name(self, exact, payment, threshold):
            released = super()._name(exact, payment, threshold)
            tape.entries.append(Named(payment, dict(exact._sealed), released, threshold, asker()))
            return released

        def matrix(self, purpose, sensitivity, weights, *rest):
            tape.weights[purpose] = np.array([float(w) for w in weights])
            return super().matrix(purpose, sensitivity, weights, *rest)

    return Recording


def replaying_gate(tape, moved):
    """A gate that answers from a tape; `moved` collects, for each line of the book, how far every statistic moved."""
    entries = iter(tape.entries)  # of all gates of a fit, one after the other

    class Replaying(Gate):
        def _next(self, payment, shape):
            entry = next(entries, None)
            if entry is None:
                raise Diverged("it measures more")
            if (entry.line, getattr(entry.exact, "shape", None)) != (payment, shape):
                raise Diverged(f"it measures something else for {payment.purpose!r}")
            return entry

        def _release(self, exact, noise, payment, weight, block=None):
            entry = self._next(payment, exact._sealed.shape)
            change = exact._sealed.astype(np.float64) - entry.exact
            moved.setdefault((id(self), len(self.book)), []).append((change, entry))
            return entry.released

        def _choose(self, exact, noise, payment, taken):
            entry = self._next(payment, exact._sealed.shape)
            change = exact._sealed.astype(np.float64) - entry.exact
            moved.setdefault((id(self), len(self.book)), []).append((change, entry))
            return entry.released

        def _pick(self, exact, payment, open_):
            entry = self._next(payment, exact._sealed.shape)
            if not np.array_equal(entry.block, open_):
                raise Diverged(f"it chooses among other candidates for {payment.purpose!r}")
            change = exact._sealed.astype(np.float64) - entry.exact
            moved.setdefault((id(self), len(self.book)), []).append((change, entry))
            return entry.released

        def _name(self, exact, payment, threshold):
            entry = self._next(payment, None)
            common = sorted(set(entry.exact) & set(exact._sealed))
            change = np.array([float(exact._sealed[label] - entry.exact[label]) for label in common])
            moved.setdefault((id(self), len(self.book)), []).append((change, entry))
            alone = [count for label, count in exact._sealed.items() if label not in entry.exact]
            moved.setdefault("named", []).append((self, payment, threshold, alone))
            alone = [count for label, count in entry.exact.items() if label not in exact._sealed]
            moved.setdefault("named before", []).append((self, payment, entry.threshold, alone))
            return entry.released

        def _direct(self, exact, payment, t):
            entry = self._next(payment, exact._sealed.shape)
            moved.setdefault((id(self), len(self.book)), []).append((exact._sealed, entry))
            return entry.released

    return Replaying


def gaussian_cost(epsilon):
    """ρ = μ²/2 of the Gaussian differential privacy that an ε-DP choice has: μ = 2Φ⁻¹(1/(1 + e^−ε))."""
    return 2 * float(norm.ppf(expit(epsilon))) ** 2


def loss(changes, weights, unit="ε", loose=False):
    """The privacy loss of one charge, in its own unit: exact for the law at hand, given how its statistics moved."""
    line = changes[0][1].line
    scale = float(line.scale)
    if line.law.name == "laplace":
        return sum(np.abs(change).sum() * entry.weight for change, entry in changes) / scale
    if line.law.name == "gaussian":
        return sum((change**2).sum() * entry.weight for change, entry in changes) / (2 * scale)
    if line.law.name == "cube":
        return max(np.abs(change).max() * entry.weight for change, entry in changes) / scale
    if line.law.name == "knorm":  # tables whose sums move, or move apart, have another support: docs/proofs/knorm.md
        sums = {change.sum() for change, _ in changes}
        if len(sums) > 1 or (not loose and sums != {0}):
            return np.inf
        return max(np.abs(change).sum() / (1 if loose else 2) * entry.weight for change, entry in changes) / scale
    if line.law.name == "gumbel":  # the range of its loss over all candidates: docs/proofs/relations.md
        ranges = [np.ptp(change[entry.block]) / scale for change, entry in changes]
        return sum(ranges) if unit == "ε" else sum(np.pi / 16 * r**2 for r in ranges)
    if line.law.name == "choice":  # docs/proofs/choice.md
        each = [np.abs(change - change[entry.released]).max() / scale for change, entry in changes]
        return sum(each) if unit == "ε" else sum(map(gaussian_cost, each))
    if line.law.name in ("matrix", "signs"):  # of signs, the nuclear norm is what the worst neighbours need (cone.md)
        w = weights[line.purpose]
        D, asked = np.zeros((len(w), len(w))), np.zeros((len(w), len(w)), dtype=bool)
        for change, entry in changes:
            rows, columns = entry.block
            D[rows, columns] = change / (w[rows, None] * w[columns])
            D[columns, rows] = D[rows, columns].T
            asked[rows, columns] = asked[columns, rows] = True
        return min(np.abs(np.linalg.eigvalsh(own)).sum() for own in (D, completed(D, asked))) / scale
    (A, entry) = changes[0]
    return abs(bingham_loss(entry.exact / scale, A / scale, entry.released))


def completed(D, asked):
    """The change with entries of its diagonal that nobody asked for as they are where the change is one row's hhᵀ.

    What is not asked for may be anything: the loss is that of the matrix whose nuclear norm is least (docs/proofs/neighbours.md).
    """
    found, seen = D.copy(), int(np.argmax(np.abs(np.diag(D)) * np.diag(asked)))
    if D[seen, seen]:
        for i in np.flatnonzero(~np.diag(asked)):
            found[i, i] = D[i, seen] ** 2 / D[seen, seen]
    return found


def selection_losses(moved):
    """For both neighbours: the chance that some label is named that it has alone, and half the δ that was paid for it."""
    for side in ("named", "named before"):
        found = moved.pop(side, [])
        if found:
            chance = sum(named_chance(line, threshold, c) for _, line, threshold, alone in found for c in alone)
            yield chance, float(found[0][1].delta) / 2


def named_chance(line, threshold, count):
    """P(count + noise > threshold), for Gaussian noise on the integers, discrete or rounded, whichever is larger."""
    variance, least = float(line.scale), threshold - count + 1
    sd = np.sqrt(variance)
    if sd > 1e4:  # counted in steps of a person: discrete and rounded noise are one, to eight digits
        return float(norm.sf((least - 0.5) / sd))
    far = int(40 * sd) + 40
    all_of_it = np.exp(-(np.arange(-far, far + 1) ** 2) / (2 * variance)).sum()
    discrete = np.exp(-(np.arange(least, far + 1) ** 2) / (2 * variance)).sum() / all_of_it
    return float(max(discrete, norm.sf((least - 0.5) / sd)))


def promise_broken(privacy):
    """Whether a statement may spend more than its ε and δ prove: the amounts with what naming labels leaves of δ."""
    budget, apart = privacy.budget, sum((charge.delta for charge in privacy.charges), Fraction(0))
    return not budget.pure and budget.amount > rho_within(budget.epsilon, budget.delta - apart)


def bingham_loss(A, B, directions):
    """log of the density ratio of PROJ on A and on B at given orthonormal directions, for at most three dimensions."""
    total, p = 0.0, len(A)
    for i, v in enumerate(directions.T):
        # Each direction is drawn in an orthonormal basis of the complement of those before.
        basis = np.linalg.svd(np.eye(p) - directions[:, :i] @ directions[:, :i].T)[0][:, : p - i]
        a, b = basis.T @ A @ basis, basis.T @ B @ basis
        x = basis.T @ v
        total += x @ (a - b) @ x - log_mean_exp(a) + log_mean_exp(b)
    return total


def log_mean_exp(A):
    """log of the mean of exp(xᵀAx) over the unit sphere of one, two or three dimensions, by quadrature."""
    around = (np.arange(800) + 0.5) * 2 * np.pi / 800
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    if len(A) == 1:
        x, w = np.ones((1, 1)), np.ones(1)
    elif len(A) == 2:
        x, w = circle, np.full(800, 1 / 800)
    else:  # uniform in height, Gauss's rule
        height, weight = np.polynomial.legendre.leggauss(100)
        flat = np.sqrt(1 - height**2)[:, None, None] * circle
        x = np.concatenate([flat, np.broadcast_to(height[:, None, None], (100, 800, 1))], axis=2).reshape(-1, 3)
        w = np.repeat(weight / 2 / 800, 800)
    values = np.einsum("ij,jk,ik->i", x, A, x)
    return float(values.max() + np.log(w @ np.exp(values - values.max())))


@dataclass(frozen=True)
class Ride:
    """A configuration: how to make the synthesizer with a seed, a table, its neighbours (with what they are), a stranger.

    `exercises` is what the ride is there for, by the names of `audits.evidence`, each with the least that it must show. `files`
    says whether whole bundles are compared, which takes longer. A ride that is `drawn` at random need not exercise anything.
    """

    name: str
    make: Callable[[int], object]
    table: object
    neighbours: dict
    stranger: object
    exercises: Mapping[str, float] = field(default_factory=dict)
    files: bool = False
    drawn: bool = False


def ride(one: Ride, seed, quick=True):
    """What is wrong with a configuration, in turn: what it does not exercise, overspent charges, things that left unpaid."""
    tape, shares = Tape(), Counter()
    with cheap_fits() if quick else ExitStack():
        try:
            with beginnings() as begun:
                subject, face = fitted(one, one.table, recording_gate(tape), seed)
        except InternalError as error:
            yield f"{one.name}: {error}"
            return
        if again := sorted({purpose for (_, purpose), times in begun.items() if times > 1}):
            yield f"{one.name}: a stream is begun again, so that noise is drawn twice: {', '.join(again)}"
        if not one.drawn:
            yield from (f"{one.name}: {words}" for words in unproven(one, subject, tape))
        if subject.privacy is not None and promise_broken(subject.privacy):
            yield f"{one.name}: the charges need a larger δ than was promised"
        # A wrong charge shows at the first neighbour, what leaves unpaid at a stranger: planted faults end there.
        first, *others = one.neighbours.items()
        for name, other in (first, ("a stranger", one.stranger), *others):
            moved = {}
            try:
                again = fitted(one, other, replaying_gate(tape, moved), seed)[1]
            except Diverged as error:
                yield f"{one.name}, {name}: given the same releases {error}"
                continue
            except CoveyError as error:
                yield f"{one.name}, {name}: given the same releases it fails: {error}"
                continue
            if different := [part for part in {**face, **again} if face.get(part) != again.get(part)]:
                yield f"{one.name}, {name}: something left that was not measured: {', '.join(different)}"
            if name == "a stranger":
                continue
            for chance, paid in selection_losses(moved):
                if chance > paid * (1 + SLACK):
                    yield f"{one.name}, {name}: a label is named with chance {chance:.3g}, {paid:.3g} was paid"
            for changes in moved.values():
                line = changes[0][1].line
                spent = loss(changes, tape.weights, tape.budget.unit, tape.budget.size_is_secret)
                if spent > float(line.amount) * (1 + SLACK):
                    yield f"{one.name}, {name}: {line.purpose} spent {spent:.3g} of {float(line.amount):.3g}"
                for words in names_of_spending(changes[0][1], tape.budget):
                    shares[words] = max(shares[words], spent / float(line.amount))
        yield from (f"{one.name}: {words}" for words in unspent(one, shares))


@contextmanager
def beginnings():
    """How often each stream of noise is begun, by the key of its family and its purpose."""
    begun, begin = Counter(), Streams.noise

    def counting(self, purpose):
        begun[self.key, purpose] += 1
        return begin(self, purpose)

    with patch.object(Streams, "noise", counting):
        yield begun


def fitted(one, table, make_gate, seed):
    """A synthesizer and everything that leaves a fit through a given gate, by name, with the same post-processing each time."""
    subject = one.make(seed)
    with patch.object(covey.synthesizers.private, "Gate", make_gate), hearing() as told:
        subject.fit(table)
        return subject, {**leaving(subject, one.files), "messages": told}


@contextmanager
def cheap_fits():
    """Few centres and few steps: what is looked at here does not depend on how good the fit is."""
    bits, tables = covey.engine.models.bits, covey.engine.models.tables.method
    plan = bits.plan_bits
    with ExitStack() as stack:

        def small(*arguments):
            return replace(plan(*arguments), centres=30, final_steps=8, parity_steps=8)

        stack.enter_context(patch.object(bits, "plan_bits", small))
        stack.enter_context(patch.object(tables, "CENTRES", 30))
        stack.enter_context(patch.object(tables, "fit_steps", lambda *_: 10))
        stack.enter_context(patch.object(covey.paper.reals, "POINTS", 40))
        stack.enter_context(patch.object(covey.engine.fit.reals, "ROUNDS", 2))
        stack.enter_context(patch.object(covey.engine.fit.factors, "DRAWS", 1))
        for home, name, value in events.CHEAP:
            stack.enter_context(patch.object(home, name, value))
        yield
