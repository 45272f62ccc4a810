"""Gaussian charges in the ledger: composed by ρ, never less private than the cap, beside charges of other kinds."""

import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from covey.errors import LedgerError, ParameterError
from covey.privacy.budget import make_budget
from covey.privacy.gaussian import delta_above, rho_within
from covey.privacy.ledger import Ledger
from covey.privacy.ledger import file as ledger_file

DELTA = Fraction(1, 10**9)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.sqlite")
    made.open_dataset("people", Fraction(3), Fraction(1, 10**6))
    return made


def charge(ledger, epsilon, delta=DELTA, rho=True):
    epsilon = Fraction(epsilon)
    ledger.charge("people", epsilon, delta, "test", rho=rho_within(epsilon, delta) if rho else None)


def status(ledger):
    return ledger.datasets()[0]


def fill(ledger, **options):
    """How many charges of ε = ½ fit."""
    for count in range(1000):
        try:
            charge(ledger, Fraction(1, 2), **options)
        except LedgerError:
            return count
    raise AssertionError("the cap never held")


def test_gaussian_charges_compose_better_than_they_add(ledger):
    assert fill(ledger) > 15  # their ε add up to more than twice the cap
    found = status(ledger)
    assert found.spent.within(found.budget)
    assert delta_above(found.rho, Fraction(3)) <= Fraction(1, 10**6)
    one_more = found.rho + rho_within(Fraction(1, 2), DELTA)
    assert delta_above(one_more, Fraction(3)) > Fraction(1, 10**6)  # nor is budget left lying


def test_google_agrees_that_the_cap_is_kept(ledger):
    count = fill(ledger)
    sigma = float(1 / (2 * rho_within(Fraction(1, 2), DELTA))) ** 0.5
    together = from_gaussian_mechanism(sigma, value_discretization_interval=1e-3).self_compose(count)
    assert together.get_epsilon_for_delta(1e-6) <= 3.01
    more = from_gaussian_mechanism(sigma, value_discretization_interval=1e-3).self_compose(2 * count)
    assert more.get_epsilon_for_delta(1e-6) > 3.5


def test_charges_of_no_or_other_accounting_add_up_as_before(ledger):
    assert fill(ledger, rho=False) == 6
    assert status(ledger).rho == 0
    assert status(ledger).spent.epsilon == 3


def test_both_kinds_share_a_cap(ledger):
    charge(ledger, 1, Fraction(0), rho=False)  # pure
    alone = rho_within(Fraction(2), Fraction(1, 10**6))  # what the rest of the cap buys
    ledger.charge("people", Fraction(2), Fraction(1, 10**6), "all", rho=alone)
    assert status(ledger).spent.within(status(ledger).budget)
    with pytest.raises(LedgerError, match="does not cover this"):
        charge(ledger, Fraction(1, 100))
    with pytest.raises(LedgerError, match="does not cover this"):
        charge(ledger, Fraction(1, 10**6), Fraction(0), rho=False)


def test_what_was_spent_is_a_promise_that_holds(ledger):
    """At every moment the ε and δ shown bound the composition, lie within the cap, and never pass the plain sums."""
    for count, (epsilon, delta) in enumerate([("0.5", "1e-9"), ("0.01", "1e-7"), ("1", "1e-12"), ("0.9", "8e-7")], 1):
        charge(ledger, Fraction(epsilon), Fraction(delta))
        found = status(ledger)
        assert found.charges == count
        assert delta_above(found.rho, found.spent.epsilon) <= found.spent.delta
        assert found.spent.within(found.budget)
        assert found.spent.epsilon <= found.gaussian.epsilon


def test_a_ledger_of_before_goes_on(ledger):
    """Old charges have no ρ: they add up. The first Gaussian one makes the file unreadable for versions that know none."""
    charge(ledger, 1, rho=False)
    assert version(ledger) == 2
    ledger.verify()
    charge(ledger, 1)
    assert version(ledger) == 3
    ledger.verify()
    assert status(ledger).plain.epsilon == 1
    assert [event.quecto_rho is None for event in ledger.history("people")] == [True, True, False]


def version(ledger):
    with closing(sqlite3.connect(ledger.path)) as connection:  # from 3.13 on Python warns of one left open
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_another_format_is_refused(ledger, monkeypatch):
    charge(ledger, 1)
    monkeypatch.setattr(ledger_file, "GAUSSIAN_FORMAT", 4)  # as an earlier version would see it
    with pytest.raises(LedgerError, match="another version of covey"):
        ledger.datasets()


def test_charges_past_the_cap_are_found_when_the_file_is_read(ledger, monkeypatch):
    from covey.privacy.ledger.books import DatasetStatus

    with monkeypatch.context() as patch:
        patch.setattr(DatasetStatus, "within_cap", True)
        for _ in range(60):
            charge(ledger, Fraction(1, 2))
    with pytest.raises(LedgerError, match="the charges of 'people' are past its cap"):
        ledger.datasets()


def test_rho_is_rounded_up_and_checked(ledger):
    tiny = Fraction(1, 3 * 10**30)
    ledger.charge("people", Fraction(1, 10**9), DELTA, "tiny", rho=tiny)
    assert status(ledger).quecto_rho == 1
    for wrong in (0, -1, 0.5, True, "1", Fraction(10**10)):
        with pytest.raises(ParameterError, match=r"^rho must be a positive Fraction"):
            ledger.charge("people", Fraction(1, 10**9), DELTA, "wrong", rho=wrong)
        with pytest.raises(ParameterError, match=r"^rho must be a positive Fraction"):
            ledger.check("people", Fraction(1, 10**9), DELTA, rho=wrong)
    assert status(ledger).charges == 1


def test_a_check_refuses_what_a_charge_would(ledger):
    budget = make_budget(1, 1e-9)
    ledger.check("people", budget.epsilon, budget.delta, rho=budget.gaussian_rho)
    fill(ledger)
    with pytest.raises(LedgerError, match="does not cover this"):
        ledger.check("people", budget.epsilon, budget.delta, rho=budget.gaussian_rho)


def test_a_budget_says_what_the_ledger_composes():
    gaussian = make_budget(1, 1e-9, rows_per_person=5)
    assert gaussian.gaussian_rho == gaussian.amount  # all rows of a person together
    assert make_budget(1).gaussian_rho is None
    assert make_budget(1, 1e-9, noise="opendp").gaussian_rho is None
