"""The ledger's cap against an adversary who chooses kind and amount of every charge in view of all answers so far.

The worst mechanisms of each kind are known: randomised response for pure ε, with a full disclosure of probability δ for (ε, δ),
and a Gaussian for ρ. After some answers only their privacy loss L = log P/Q matters, and at the end P(S) − e^ε·Q(S) is at most
the expectation of (1 − e^{ε − L})₊ under P, which the best S attains. So a dynamic program over what the ledger has accepted and
L finds the true δ of the best strategy within a set of moves. What is accepted is asked of the ledger's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from audits.planting import Fault, replaced
from covey.engine.gaussian import delta_above, epsilon_above, rho_within
from covey.ledger.status import QUECTO, Amount, DatasetStatus, counted_rho, gaussian_cap

STEP = 0.002  # of the grid of L: at these caps δ then errs by less than one part in 500
LOSSES = np.arange(-1250, 1751) * STEP
TOLERANCE = 1.005
NOISY = Fraction(1, 100)  # the part of the cap's δ that a Gaussian move promises


@dataclass(frozen=True)
class Move:
    """A charge: what it asks for, and what the best mechanism of its kind makes of a value that depends on L."""

    asked: Amount
    quecto_rho: int | None = None

    def __call__(self, status: DatasetStatus) -> DatasetStatus | None:
        return status.with_charge(self.asked, 1, self.quecto_rho)

    @cached_property
    def kernel(self) -> np.ndarray:
        """Densities of L' given L under P, L' − L normal with mean ρ and variance 2ρ."""
        rho = (self.quecto_rho or 0) / QUECTO
        jump = LOSSES[None, :] - LOSSES[:, None] - rho
        return np.exp(-(jump**2) / (4 * rho)) * STEP / np.sqrt(4 * np.pi * rho)

    def before(self, value: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The value before this move, if `value` is that after it; an ε that is no multiple of STEP needs an exact function."""
        if self.quecto_rho is not None:
            return self.kernel @ value(LOSSES)
        epsilon, delta = float(self.asked.epsilon), float(self.asked.delta)
        up = 1 / (1 + np.exp(-epsilon))
        return delta + (1 - delta) * (value(LOSSES + epsilon) * up + value(LOSSES - epsilon) * (1 - up))


@dataclass(frozen=True)
class Strategies:
    """Any number of small moves, and then the largest move of any kind that is accepted."""

    cap: Amount
    moves: tuple[Move, ...]
    limits: tuple[int, ...]  # how often each may be made

    def delta(self, status: DatasetStatus) -> float:
        """The true δ, at the cap's ε, of the best of them."""
        values: dict[tuple[DatasetStatus, tuple[int, ...]], np.ndarray] = {}

        def value(status: DatasetStatus, made: tuple[int, ...]) -> np.ndarray:
            if (status, made) not in values:
                best = self.last(status)
                for place, move in enumerate(self.moves):
                    after = move(status) if made[place] < self.limits[place] else None
                    if after is not None:
                        more = tuple(count + (place == at) for at, count in enumerate(made))
                        then = value(after, more)
                        best = np.maximum(best, move.before(lambda losses, then=then: np.interp(losses, LOSSES, then)))
                values[status, made] = best
            return values[status, made]

        return float(value(status, (0,) * len(self.moves))[np.searchsorted(LOSSES, -STEP / 2)])

    def last(self, status: DatasetStatus) -> np.ndarray:
        """The best value with one more move of the largest size, or none."""
        epsilon = float(self.cap.epsilon)

        def end(losses: np.ndarray) -> np.ndarray:
            return np.maximum(0, 1 - np.exp(epsilon - losses))

        best = end(LOSSES)
        pure = largest(lambda nano: status.with_charge(Amount(nano), 1, None), self.cap.nano_epsilon)
        best = np.maximum(best, Move(Amount(pure)).before(end))
        room = (self.cap - status.summed).atto_delta
        if room > 0:
            other = largest(lambda nano: status.with_charge(Amount(nano, room), 1, None), self.cap.nano_epsilon)
            best = np.maximum(best, Move(Amount(other, room)).before(end)) if other else best
        unit = gaussian_cap(self.cap) >> 20
        promised = Amount(2 * self.cap.nano_epsilon, self.cap.atto_delta)  # it holds, and no sum has room for it
        rho = largest(lambda k: status.with_charge(promised, 1, k * unit), 1 << 21) * unit / QUECTO
        if rho:
            mu, far = np.sqrt(2 * rho), epsilon - LOSSES
            best = np.maximum(best, ndtr(mu / 2 - far / mu) - np.exp(far) * ndtr(-mu / 2 - far / mu))
        return best


def largest(accepted: Callable[[int], object | None], most: int) -> int:
    """The largest number of units that is accepted."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accepted(middle) is None else (middle, high)
    return low


def gaussian_move(cap: Amount, rho: Fraction) -> Move:
    """A Gaussian charge of ρ, with a promise that follows from it."""
    delta = cap.delta * NOISY
    return Move(Amount.rounded_up(epsilon_above(rho, delta), delta), int(rho * QUECTO))


def games() -> list[tuple[str, DatasetStatus, Strategies]]:
    """Caps, ways of counting, and sets of strategies: each has a name."""
    found = []
    for epsilon, delta in ((Fraction(1), Fraction(1, 10**9)), (Fraction("0.5"), Fraction(1, 10**6))):
        cap = Amount.rounded_down(epsilon, delta)
        small = gaussian_move(cap, rho_within(epsilon, delta) / 50)
        pure = Move(Amount.rounded_up(epsilon / 25, Fraction(0)))
        other = Move(Amount.rounded_up(epsilon / 10, delta / 4))
        sets = {
            "a Gaussian step, then the largest": ((small,), (1,)),
            "fifty Gaussian steps": ((small,), (50,)),
            "steps of three kinds": ((small, pure, other), (5, 2, 2)),
        }
        for composition in (None, "sum", "gaussian"):
            for name, (moves, limits) in sets.items():
                words = f"ε = {float(epsilon):g}, {composition or 'first charge decides'}, {name}"
                if composition is None or len(moves) == 3:
                    found.append((words, DatasetStatus("people", cap, composition), Strategies(cap, moves, limits)))
    return found


def filter_kept(seed: object = None, other_caps: bool = False) -> Iterator[str]:
    """No adaptive strategy gets more than the cap's δ; the quick games come first, for a planted rule ends at the first alarm.

    Games of other caps than the first are for `make audit`.
    """
    first = games()[0][2].cap
    for words, status, strategies in [game for game in games() if (game[2].cap != first) == other_caps]:
        times = strategies.delta(status) / float(strategies.cap.delta)
        if times > TOLERANCE:
            yield f"{words}: {times:.2f} times the cap's δ"


# Two rules that look right and are not.


def pure_part_first(real: object) -> object:
    """ε and δ of other charges add up, and what is left of the cap is compared with the composition of the Gaussian ones."""

    def with_charge(self, asked, rows_per_person, quecto_rho):
        more = {"summed": self.summed + asked} if quecto_rho is None else {"quecto_rho": self.quecto_rho + quecto_rho}
        charged = replace(self, **more)
        left = charged.budget - charged.summed
        if min(left.nano_epsilon, left.atto_delta) < 0:
            return None
        if not charged.quecto_rho:
            return charged
        return charged if delta_above(Fraction(charged.quecto_rho, QUECTO), left.epsilon) <= left.delta else None

    return with_charge


def whichever_fits(real: object) -> object:
    """A charge is accepted if the sums fit, or if μ² does: two filters, each of which may spend the whole δ."""

    def with_charge(self, asked, rows_per_person, quecto_rho):
        counted = counted_rho(asked, quecto_rho)
        # What has no μ² uses up all of it.
        rho = self.quecto_rho + (2 * gaussian_cap(self.budget) if counted is None else counted)
        charged = replace(self, summed=self.summed + asked, quecto_rho=rho)
        fits = charged.summed.within(self.budget) or rho <= gaussian_cap(self.budget)
        return charged if fits else None

    return with_charge


def filter_faults() -> list[Fault]:
    """Both of them, planted."""
    return [
        Fault(
            "pure and Gaussian charges share a cap as if fixed in advance",
            "filter",
            replaced((DatasetStatus, "with_charge", pure_part_first)),
        ),
        Fault(
            "the ledger takes whichever count fits", "filter", replaced((DatasetStatus, "with_charge", whichever_fits))
        ),
    ]
