"""Naming labels: the δ that it costs is the δ that is paid, exactly, by drawing, and over all outcomes of small tables."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from covey.engine.budget import Budget, Charge, PrivacyStatement, make_budget
from covey.engine.entropy import Streams
from covey.engine.gate import Exact, Gate, selection_threshold
from covey.engine.gaussian import rho_within
from covey.engine.sensitivity import Sensitivity
from covey.errors import InternalError


def tail(m, variance):
    """P(noise ≥ m) for the discrete Gaussian or a rounded one, whichever is larger."""
    far = int(45 * np.sqrt(variance)) + 45
    y = np.arange(-far, far + 1)
    weights = np.exp(-(y**2) / (2 * variance))
    return max(weights[y >= m].sum() / weights.sum(), norm.sf((m - 0.5) / np.sqrt(variance)))


GRID = list(product([0.3, 2.0, 9.7, 400.0], [1e-12, 1e-6, 0.01, 0.2], [1, 3, 24], [1, 5]))


def worst(threshold, variance, columns, k):
    """The chance that some label is named that a person with k rows brings, whose counts are k at most."""
    return columns * k * tail(threshold - k + 1, variance)


def test_a_label_of_one_person_is_named_with_half_the_chance_that_was_paid():
    too_low = 0
    for variance, delta, columns, k in GRID:
        threshold = selection_threshold(Fraction(variance), Fraction(delta), columns, k)
        assert worst(threshold, variance, columns, k) <= delta / 2
        too_low += worst(threshold - 1, variance, columns, k) > delta / 2
    assert too_low > len(GRID) / 4  # one lower would be wrong, unless rounding up happened to cover it


@pytest.mark.parametrize("rows", [1, 2, 97, 1000, 1 << 20, (1 << 20) + 1])
def test_labels_of_one_person_whose_rows_share_a_weight_are_named_with_the_chance_that_was_paid(rows):
    """However many rows bring a label each: what all of them weigh is one person."""
    k = 1 << 20
    for sd, delta, columns in product([0.8, 3.0, 50.0], [1e-12, 1e-6, 0.01], [1, 24]):
        threshold = selection_threshold(Fraction(sd) ** 2 * k**2, Fraction(delta), columns, k)
        brought = rows if k // rows else 0
        chance = columns * brought * norm.sf((threshold - k // rows + 0.5) / (sd * k))
        assert chance <= delta / 2
        if rows > 900 and brought and sd > 1:  # a threshold for one label of each column would be wrong
            low = k + norm.isf(delta / (2 * columns)) * sd * k
            assert columns * brought * norm.sf((low - k // rows) / (sd * k)) > delta / 2


def a_selecting_gate(amount, delta, seed=0, columns=1, rows_per_person=1):
    budget = Budget(Fraction(1), Fraction(1, 2), rows_per_person, Fraction(amount), selection=Fraction(delta))
    gate = Gate(budget, {"domains": Fraction(1)}, Streams.from_seed(seed))
    return gate, gate.select("domains", Sensitivity(l2_squared=2 * columns), columns)


def test_drawing_agrees_and_tells_a_threshold_that_is_one_too_low():
    """Twenty thousand labels of one record each: the share that is named, against δ/2 = 0.1."""
    gate, selection = a_selecting_gate(Fraction(42, 100), Fraction(1, 5))
    labels = {f"label {j:05d}": 1 for j in range(20_000)}
    named = selection.name("a", Exact(labels))
    assert len(named) / 20_000 <= 0.1
    assert list(named) == sorted(named)
    lower = gate._name(Exact(labels), selection.payment, selection.threshold - 1)
    assert len(lower) / 20_000 > 0.1 + 5 * np.sqrt(0.09 / 20_000)


def chances(counts, labels, threshold, variance):
    """For every set of labels, the chance that just these are named."""
    single = [tail(threshold - counts[c] + 1, variance) if c in counts else 0.0 for c in labels]
    return np.array(
        [
            np.prod([p if named else 1 - p for p, named in zip(single, outcome, strict=True)])
            for outcome in product([True, False], repeat=len(labels))
        ]
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_theorem_over_all_outcomes_of_small_tables(epsilon):
    """δ(ε) of naming alone, for neighbours that bring one label and take one away, in both directions."""
    delta = Fraction(1, 20)
    budget = make_budget(epsilon, delta, labels=True)
    variance = float(budget.variance(2))
    threshold = selection_threshold(budget.variance(2), budget.selection, 1)
    shown = []
    for base in (0, threshold, threshold + 3):
        one, other = {"a": base + 1, "gone": 1}, {"a": base + 1, "new": 1}
        moved = {"a": base, "new": 1} if base else other
        for first, second in ((one, other), ({"a": base + 1}, moved)):
            labels = sorted({*first, *second})
            for P, Q in ((first, second), (second, first)):
                p, q = chances(P, labels, threshold, variance), chances(Q, labels, threshold, variance)
                shown.append(np.maximum(p - np.exp(epsilon) * q, 0).sum())
    assert max(shown) <= float(delta)
    low = 0  # a program that names whatever exceeds nothing is told
    p, q = (chances(c, ["gone", "new"], low, variance) for c in ({"gone": 1}, {"new": 1}))
    assert np.maximum(p - np.exp(epsilon) * q, 0).sum() > float(delta)


def test_labels_cost_a_part_of_delta_which_the_rest_does_not_have():
    plain, learning = make_budget(1, 1e-6), make_budget(1, 1e-6, labels=True)
    assert learning.delta == plain.delta == Fraction(1, 10**6)
    assert learning.selection == Fraction(1, 10**7)
    assert learning.amount == rho_within(Fraction(1), Fraction(9, 10**7)) < plain.amount
    assert make_budget(1, 0, labels=True).selection == 0


def test_the_book_says_what_was_spent_of_delta_and_nobody_spends_it_twice():
    gate, selection = a_selecting_gate(1, Fraction(1, 10), columns=2)
    assert gate.spent == (Charge("domains", Fraction(1), "ρ", Fraction(1, 10)),)
    selection.name("a", Exact({"x": 10**6}))
    with pytest.raises(InternalError, match="not paid for"):
        selection.name("a", Exact({"x": 1}))
    selection.name("b", Exact({}))
    with pytest.raises(InternalError, match="not paid for"):
        selection.name("c", Exact({"x": 1}))
    with pytest.raises(InternalError, match="is spent"):
        gate.select("domains", Sensitivity(l2_squared=2), 1)
    halves = Gate(gate.budget, {"domains": Fraction(1)}, Streams.from_seed(0))
    halves.select("domains", Sensitivity(l2_squared=2), 1, Fraction(1, 2))
    with pytest.raises(InternalError, match="part of δ"):
        halves.select("domains", Sensitivity(l2_squared=2), 1, Fraction(1, 2))


def test_pure_budgets_name_nothing():
    gate = Gate(make_budget(1), {"domains": Fraction(1)}, Streams.from_seed(0))
    with pytest.raises(InternalError):
        gate.select("domains", Sensitivity(l1=2, l2_squared=2), 1)


def test_a_statement_cannot_spend_more_of_delta_than_its_part():
    budget = make_budget(1, 1e-6, labels=True)
    fine = Charge("domains", budget.amount, "ρ", budget.selection)
    said = str(PrivacyStatement(budget, (fine,), 10, "m", seeded=False, learned=("a",), left_out=("b",)))
    assert "domains of 2 columns learned with noise, for 1 of the budget and 1e-07 of δ" in said
    with pytest.raises(InternalError, match="more of δ"):
        PrivacyStatement(budget, (Charge("domains", budget.amount, "ρ", 2 * budget.selection),), 10, "m", seeded=False)


def test_labels_above_the_threshold_are_named_whatever_their_order():
    _, selection = a_selecting_gate(10**6, Fraction(1, 10))
    counts = {"zebra": 50, "ant": 60, "Ärzte": 70, "rare": 1}
    named = selection.name("a", Exact(counts))
    assert list(named) == ["ant", "zebra", "Ärzte"]
    assert all(abs(noisy - counts[label]) < 5 for label, noisy in named.items())


@pytest.mark.parametrize(
    ("variance", "delta", "columns"),
    [(1, 0, 1), (1, 1, 1), (1, Fraction(3, 2), 1), (0, Fraction(1, 9), 1), (1, Fraction(1, 9), 0)],
)
def test_a_threshold_needs_something_to_pay_with(variance, delta, columns):
    with pytest.raises(InternalError, match=r"naming labels needs a part of δ, noise and columns\.$"):
        selection_threshold(Fraction(variance), Fraction(delta), columns)


def test_a_person_has_one_row_unless_more_are_said():
    half, delta = Fraction(1, 2), Fraction(1, 10**6)
    assert selection_threshold(half, delta, 3) == selection_threshold(half, delta, 3, 1)
    assert selection_threshold(half, delta, 3) < selection_threshold(half, delta, 3, 2)
    gate, selection = a_selecting_gate(1, delta, columns=3, rows_per_person=5)
    assert selection.threshold == selection_threshold(gate.book[0].scale, delta, 3, 5)
