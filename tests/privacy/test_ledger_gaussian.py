"""Gaussian charges in the ledger: composed by ρ, never less private than the cap, beside charges of other kinds."""

from contextlib import nullcontext
from fractions import Fraction

import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from covey.errors import LedgerError, ParameterError
from covey.privacy.budget import make_budget
from covey.privacy.gaussian import delta_above, rho_within
from covey.privacy.ledger import Amount, DatasetStatus, Ledger

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


def rho(found):
    return Fraction(found.quecto_rho, 10**30)


def test_gaussian_charges_compose_better_than_they_add(ledger):
    assert fill(ledger) > 15  # their ε add up to more than twice the cap
    found = status(ledger)
    assert found.composition == "gaussian"
    assert found.spent.within(found.budget)
    assert delta_above(rho(found), Fraction(3)) <= Fraction(1, 10**6)
    one_more = rho(found) + rho_within(Fraction(1, 2), DELTA)
    assert delta_above(one_more, Fraction(3)) > Fraction(1, 10**6)  # nor is budget left lying


def test_google_agrees_that_the_cap_is_kept(ledger):
    count = fill(ledger)
    sigma = float(1 / (2 * rho_within(Fraction(1, 2), DELTA))) ** 0.5
    together = from_gaussian_mechanism(sigma, value_discretization_interval=1e-3).self_compose(count)
    assert together.get_epsilon_for_delta(1e-6) <= 3.01
    more = from_gaussian_mechanism(sigma, value_discretization_interval=1e-3).self_compose(2 * count)
    assert more.get_epsilon_for_delta(1e-6) > 3.5


def test_charges_of_no_or_other_accounting_add_up(ledger):
    assert fill(ledger, rho=False) == 6
    assert status(ledger).composition == "sum"
    assert status(ledger).quecto_rho == 0
    assert status(ledger).spent.epsilon == 3


def test_what_was_first_decides_how_the_rest_is_counted(ledger):
    charge(ledger, 1, Fraction(0), rho=False)  # pure: sums, for Gaussian charges too
    charge(ledger, 1)
    assert status(ledger).spent == Amount.rounded_up(Fraction(2), DELTA)
    with pytest.raises(
        LedgerError, match=r"ε and δ add up\. Budget: ε = 3, δ = 1e-6\. .* Remaining: ε = 1, .* Asked: ε = 1\.5"
    ):
        charge(ledger, Fraction("1.5"))
    charge(ledger, 1, Fraction(999, 10**9))
    assert status(ledger).remaining == Amount(0, 0)


def test_a_pure_charge_counts_as_its_mu_among_gaussian_ones(ledger):
    charge(ledger, 1)
    left = status(ledger).left(Fraction(0))
    assert Fraction("0.3") < left < Fraction("0.5")  # the cap is μ = 0.648, and pure ε is about μ = 1.25ε
    with pytest.raises(
        LedgerError, match=r"counted by μ²\. .* as every pure ε = 1 does\. Nothing was charged; ask for at most"
    ):
        charge(ledger, 1, Fraction(0), rho=False)
    with pytest.raises(LedgerError, match=r"is counted by μ², and this release has none: .* release with δ = 0"):
        charge(ledger, Fraction(1, 100), rho=False)
    charge(ledger, left, Fraction(0), rho=False)
    with pytest.raises(LedgerError, match="does not cover this"):
        charge(ledger, Fraction(1, 10**4), Fraction(0), rho=False)


def test_pure_charges_alone_add_up_where_gaussian_ones_are_awaited(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.open_dataset("people", Fraction(3), Fraction(1, 10**6), "gaussian")
    for _ in range(3):
        charge(book, 1, Fraction(0), rho=False)
    found = status(book)
    assert (found.spent, found.used, found.left(Fraction(0)), found.left(DELTA)) == (Amount(3 * 10**9), 1, 0, 0)
    for kind in ({"rho": False, "delta": Fraction(0)}, {}):
        with pytest.raises(LedgerError, match="does not cover this"):
            charge(book, Fraction(1, 10**6), **kind)


@pytest.mark.parametrize("first", [None, ("1", DELTA, True), ("0.1", 0, False), ("0.3", Fraction(1, 10**7), False)])
@pytest.mark.parametrize("opened", [None, "sum", "gaussian"])
def test_what_is_said_to_be_left_is_what_is_accepted(tmp_path, opened, first):
    """To the last nano-ε, for pure and for Gaussian releases, in each way of counting."""
    book = Ledger(tmp_path / "ledger.sqlite")
    book.open_dataset("people", Fraction(3), Fraction(1, 10**6), opened)
    if first and not (opened == "gaussian" and first[1] and not first[2]):
        charge(book, first[0], *first[1:])
    found = status(book)
    for delta in (Fraction(0), DELTA, found.remaining.delta):
        largest = found.left(delta)
        for epsilon, fits in ((largest, True), (largest + Fraction(1, 10**9), False)):
            kind = rho_within(epsilon, delta) if delta else None
            with nullcontext() if fits else pytest.raises(LedgerError, match="does not cover this"):
                found.after(epsilon, delta, 1, kind)
    kind = rho_within(found.remaining.epsilon, found.remaining.delta) if found.remaining.delta else None
    found.after(found.remaining.epsilon, found.remaining.delta, 1, kind)
    assert 0 <= found.used <= 1


def test_how_a_dataset_is_counted_is_final(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.open_dataset("people", Fraction(3), composition="gaussian")
    book.open_dataset("people", Fraction(3))
    with pytest.raises(LedgerError, match="counted gaussian; that is final, so it cannot become sum"):
        book.open_dataset("people", Fraction(3), composition="sum")
    with pytest.raises(ParameterError, match="needs a positive delta_budget"):
        book.open_dataset("pure", Fraction(3), Fraction(0), "gaussian")
    with pytest.raises(ParameterError, match='composition must be "sum" or "gaussian"'):
        book.open_dataset("odd", Fraction(3), composition="first")
    charge(book, 1)
    assert [event.composition for event in book.history("people")] == ["gaussian", "gaussian"]


def test_a_cap_far_from_sense_is_counted_all_the_same(tmp_path):
    for place, (epsilon, delta) in enumerate([(10**8, 0.999999), (1e-6, 1e-12), (1e-9, 0.999999)]):
        book = Ledger(tmp_path / f"{place}.sqlite")
        cap = Fraction(repr(epsilon)), Fraction(repr(delta))
        book.open_dataset("people", *cap, "gaussian")
        found = status(book)
        assert found.left(Fraction(0)) >= cap[0]  # a δ near 1 lets through more than its ε says
        assert found.after(cap[0], min(cap[1], Fraction(1, 2)), 1, rho_within(cap[0], min(cap[1], Fraction(1, 2))))


def test_what_was_spent_is_a_promise_that_holds(ledger):
    """At every moment the ε and δ shown bound the composition and lie within the cap."""
    for count, (epsilon, delta) in enumerate([("0.5", "1e-9"), ("0.01", "1e-7"), ("1", "1e-12"), ("0.9", "8e-7")], 1):
        charge(ledger, Fraction(epsilon), Fraction(delta))
        found = status(ledger)
        assert found.charges == count
        assert delta_above(rho(found), found.spent.epsilon) <= found.spent.delta
        assert found.spent.within(found.budget)


def test_charges_past_the_cap_are_found_when_the_file_is_read(ledger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(DatasetStatus, "within_cap", True)
        for _ in range(60):
            charge(ledger, Fraction(1, 2))
    with pytest.raises(LedgerError, match=r"event \d+ takes 'people' past its cap"):
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
    with pytest.raises(ParameterError, match="leave rho out of a pure charge"):
        ledger.charge("people", Fraction(1), Fraction(0), "wrong", rho=Fraction(1))
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
