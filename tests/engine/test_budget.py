from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from covey.engine.budget import (
    Charge,
    PrivacyStatement,
    budget_for,
    check_delta,
    check_epsilon,
    exact,
    make_budget,
    split,
)
from covey.engine.entropy import SEEDED_MARK
from covey.engine.gaussian import rho_within
from covey.errors import InternalError, ParameterError


def test_numbers_are_what_a_person_wrote():
    assert exact(0.1, "x") == Fraction(1, 10)
    assert check_epsilon(np.float32(0.5)) == Fraction(1, 2)
    assert (check_epsilon(2), check_epsilon(Fraction(1, 3))) == (2, Fraction(1, 3))
    assert (check_epsilon(1e-12), check_epsilon(1e6)) == (Fraction(1, 10**12), 10**6)
    assert (check_delta(0), check_delta(0.9), check_delta(0.009, 100)) == (0, Fraction(9, 10), Fraction(9, 1000))


REFUSED = [
    *(("^epsilon must be a number", lambda e=e: check_epsilon(e)) for e in ("abc", None, True, [1])),
    *(("^epsilon must be a finite number", lambda e=e: check_epsilon(e)) for e in (float("nan"), float("inf"))),
    *(("^epsilon must be positive, got ", lambda e=e: check_epsilon(e)) for e in (0, -1)),
    ("at least 1e-12, got 9e-13: below that the answer is only noise", lambda: check_epsilon(9e-13)),
    ("at most 1e6, got 1000001: beyond that there is no privacy", lambda: check_epsilon(1000001)),
    *(
        (f"^delta must be .*{words}", lambda check=check, d=d, n=n: check(d, n=n))
        for check in (check_delta, partial(make_budget, 1))
        for d, n, words in (
            (-0.1, None, "positive and below 1, got -0.1"),
            (1, None, "positive and below 1, got 1"),
            (float("nan"), None, "finite"),
            ("x", None, "a number"),
            (0.01, 100, "positive and below 1/n = 0.01, got 0.01"),
        )
    ),
    *(
        ("split must be non-negative and sum to 1, got a = ", lambda a=a, b=b: split(Fraction(1), {"a": a, "b": b}))
        for a, b in ((0.5, 0.4), (-0.5, 1.5), (1 + Fraction(11, 10**10), 0))
    ),
    (r"got a = 0\.5, b = 0\.6\.$", lambda: split(Fraction(1), {"a": 0.5, "b": 0.6})),
    *(("^share of a must be", lambda a=a: split(Fraction(1), {"a": a, "b": 1})) for a in ("x", float("nan"))),
    ("not both", lambda: make_budget(1, rows_per_person=2, persons=True)),
    ("with person, epsilon must be at least 1e-6", lambda: make_budget(9e-7, persons=True)),
    *(("rows_per_person must be a whole number", lambda k=k: make_budget(1, rows_per_person=k)) for k in ("all", 0)),
    (
        "rows_per_person = 1000000000001 leaves too little of epsilon = 1 for each row: the answer would be noise alone. "
        "Limit how many rows a person has.$",
        lambda: make_budget(1, rows_per_person=10**12 + 1),
    ),
    ("leaves too little", lambda: make_budget(1, 1e-9, rows_per_person=10**12)),
    ("rows_per_person = 1000000000000000000000000000000 leaves", lambda: make_budget(1, rows_per_person=10**30)),
]


@pytest.mark.parametrize(("words", "ask"), REFUSED)
def test_impossible_parameters_are_refused_by_name(words, ask):
    with pytest.raises(ParameterError, match=words):
        ask()


def test_a_split_adds_up_exactly():
    charges = split(Fraction(1, 10), {"a": 0.3, "b": 0.7})
    assert sum(c.amount for c in charges.values()) == Fraction(1, 10)
    thirds = split(Fraction(1), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert sum(c.amount for c in thirds.values()) == 1
    both = split(Fraction(1), {"a": 0, "b": 1}, "ρ")
    assert both == {"a": Charge("a", Fraction(0), "ρ"), "b": Charge("b", Fraction(1), "ρ")}
    assert split(Fraction(1), {"a": 1})["a"].unit == "ε"
    # Rounding alone is forgiven, up to a billionth, and shared out.
    assert split(Fraction(1), {"a": 1 + Fraction(1, 10**9)})["a"].amount == 1


def test_a_statement_cannot_spend_more_than_it_promises():
    for wrong in (Charge("a", Fraction(2)), Charge("a", Fraction(1, 2), "ρ")):
        with pytest.raises(InternalError, match="the charges sum to"):
            PrivacyStatement(make_budget(1), (wrong,), 10, "m", seeded=False)
    assert PrivacyStatement(make_budget(1), (Charge("a", Fraction(1)),), 10, "m", seeded=False).spent == 1


def test_a_statement_about_persons_says_that_their_rows_may_be_many():
    words = str(PrivacyStatement(make_budget(1, persons=True), (), 10, "m", seeded=False))
    assert words == (
        "ε-differential privacy, ε = 1, for one person with all their rows; neighbours: tables of the same public number of "
        "persons n = 10 that differ in one person, with any number of rows in each (replace-one); mechanism: m"
    )
    budget = make_budget(1, persons=True)
    assert (budget.per_row, budget.rows_covered, budget.counted) == (1, "all", "persons")
    assert budget_for(1, 0, "all") == budget
    assert budget_for(1, 0, 3) == make_budget(1, rows_per_person=3)
    for rows, options in (("all", {"persons": True}), (3, {"rows_per_person": 3})):
        assert budget_for(1, 1e-6, rows) == make_budget(1, 1e-6, **options)
        learning = budget_for(1, 1e-6, rows, labels=True)
        assert learning == make_budget(1, 1e-6, labels=True, **options)
        assert learning.selection == Fraction(1, 10**7)


def test_a_statement_says_everything_that_belongs_to_the_promise():
    same = "neighbours: tables of the same public size n = 10 that differ in"
    rest = f"{same} one row (replace-one); mechanism: m"
    five = f"{same} the rows of one person, at most 5 and equally many in both (replace-one); mechanism: m"
    words = [str(PrivacyStatement(make_budget(*b), (), 10, "m", seeded=False)) for b in ((1,), (1, 1e-9, 5))]
    assert words[0] == f"ε-differential privacy, ε = 1, for one row; {rest}"
    assert words[1] == f"(ε, δ)-DP, ε = 1, δ = 1e-9 (Gaussian DP, μ = 0.182), for one person with up to 5 rows; {five}"
    assert str(PrivacyStatement(make_budget(1), (), 10, "m", seeded=True)) == f"{SEEDED_MARK} (mechanism: m)"


def test_a_budget_of_gaussian_noise_says_its_mu():
    budget = make_budget(1, 1e-9)
    assert budget.amount == rho_within(Fraction(1), Fraction(1, 10**9))
    assert make_budget(1).amount == 1
    assert budget.mu == Decimal("0.1820")
    assert budget.mu**2 >= float(2 * budget.amount)
    assert make_budget(1).mu is None


def test_several_rows_per_person_pay_as_group_privacy_demands():
    one, five = make_budget(1.0), make_budget(1.0, rows_per_person=5)
    assert five.per_row == one.amount / 5
    one, five = make_budget(1.0, 1e-9), make_budget(1.0, 1e-9, rows_per_person=5)
    assert five.per_row == one.amount / 25
    assert make_budget(1, rows_per_person=10**12).per_row == Fraction(1, 10**12)  # the most
    assert make_budget(1, 1e-9, rows_per_person=10**9).per_row > 0  # ρ may be far smaller than ε
