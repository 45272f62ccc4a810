"""Averages of records never move a statistic further than single records do (docs/proofs/persons.md); sums of them do."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from covey.engine.codes.counts import UNIT, Coding, squared_lengths
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.noise.sensitivity import (
    ball_sensitivity,
    pair_table_sensitivity,
    parity_sensitivity,
    simplex_radius_squared,
)
from covey.engine.units.persons import row_weights

SIZES = (3, 2, 4)
P = 4


def centred(x):
    return [np.eye(c)[v] - 1 / c for v, c in zip(x, SIZES, strict=True)]


def centred_pairs(x):
    z = centred(x)
    return np.concatenate([np.outer(z[a], z[b]).ravel() for a, b in combinations(range(len(SIZES)), 2)])


def one_hot_pairs(x):
    pairs = combinations(range(len(SIZES)), 2)
    return np.concatenate([np.outer(np.eye(SIZES[a])[x[a]], np.eye(SIZES[b])[x[b]]).ravel() for a, b in pairs])


def coordinates(x):
    z = np.concatenate(centred(x))
    return np.outer(z, z)


def parities(x):
    z = 2 * np.array(x) - 1
    return np.array([z[list(s)].prod() for d in (1, 2, 3) for s in combinations(range(P), d)], dtype=float)


CODING = Coding(np.array([300, 100, 900, 40]), 700_000, clips=True)


def cut_moments(x):
    u = CODING.encode(np.array([x]))[0]
    weight = CODING.radius_squared / 5
    return np.concatenate([np.sqrt(weight) * u, np.outer(u, u)[np.triu_indices(P, 1)]])


def signs_matrix(x):
    z = np.concatenate([[0.5], 2 * np.array(x) - 1])
    return np.outer(z, z)


CODES, BITS = list(product(*map(range, SIZES))), list(product((0, 1), repeat=P))
BALL = Fraction(CODING.radius_squared)
# The statistic of one record, the records, how far it moves is measured, and the bound for one record.
CASES = {
    "one-hot pairs, ℓ1": (one_hot_pairs, CODES, 1, 2 * 3),
    "centred pairs, ℓ2": (centred_pairs, CODES, 2, float(pair_table_sensitivity(SIZES)) ** 0.5),
    "centred coding, nuclear": (coordinates, CODES, "nuc", 2 * float(simplex_radius_squared(SIZES))),
    "parities, ℓ2": (parities, BITS, 2, float(parity_sensitivity(P, {d: Fraction(1) for d in (1, 2, 3)})) ** 0.5),
    "column counts, ℓ∞": (np.array, BITS, np.inf, 1),
    "cut rows, ℓ2": (cut_moments, BITS, 2, float(ball_sensitivity(BALL, BALL / 5)) ** 0.5),
    "signs, nuclear": (signs_matrix, BITS, "nuc", 2 * (P + 0.25)),
}


def weighed(values, chosen):
    """A person with these rows, as engines weigh them; the first record takes what rounding leaves."""
    weight = int(row_weights(np.array([len(chosen)]))[0])
    return (weight * values[chosen].sum(axis=0) + (WEIGHT_STEPS - weight * len(chosen)) * values[0]) / WEIGHT_STEPS


@pytest.mark.parametrize("name", CASES)
def test_a_replaced_person_moves_a_statistic_no_further_than_a_replaced_record(name):
    statistic, records, order, bound = CASES[name]
    values = np.array([statistic(x) for x in records], dtype=float)
    generator = np.random.default_rng(0)

    def person(most):
        alike = generator.random() < 0.5
        rows = int(generator.integers(1, most))
        return [int(generator.integers(len(values)))] * rows if alike else generator.integers(0, len(values), rows)

    pairs = [(person(9), person(60)) for _ in range(600)]
    pairs += [([a], [b] * 3) for a in range(len(values)) for b in (0, len(values) // 2, len(values) - 1)]
    moved = [np.linalg.norm(weighed(values, a) - weighed(values, b), order) for a, b in pairs]
    single = max(np.linalg.norm(a - b, order) for a in values for b in values)
    assert single <= bound * (1 + 1e-9)
    assert max(moved) <= single * (1 + 1e-9)
    assert max(moved) > 0.9 * single  # persons whose rows are alike come close
    # A wrong program adds rows up: persons of many rows pass the bound at once.
    unweighted = [np.linalg.norm(values[a].sum(axis=0) - values[b].sum(axis=0), order) for a, b in pairs]
    assert max(unweighted) > 2 * bound


def test_the_cut_is_that_of_rows_before_they_are_averaged():
    """Each row lies in the ball, so every average does."""
    lengths = [(CODING.encode(np.array([x])) ** 2).sum() for x in BITS]
    assert max(lengths) <= CODING.radius_squared < max(squared_lengths(np.array(BITS), CODING.centre))
    assert UNIT == 1024
