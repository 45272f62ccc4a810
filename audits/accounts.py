"""What the ledger writes down of a release: a check that it is what the order promises, and faults of charging."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory

import covey.ledger.status
from audits.checks import Check
from audits.planting import Fault, replaced
from covey.engine.budget import make_budget
from covey.engine.fractions import exact
from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE
from covey.ledger import Ledger
from covey.workflow import Account, PrivateOrder

CAP = Fraction(1000), Fraction(1, 1000)
UNITS = (1, 3, ALL_ROWS)
PRIORS = (None, Path("earlier"))
BUDGETS = ((Fraction(1, 3), Fraction(0)), (Fraction(2), Fraction(1, 10**9)))


def charged_as_ordered(seed):
    """For every promise, with and without what an order may name besides, the charge is the promise."""
    del seed
    found = []
    with TemporaryDirectory() as folder:
        for k, (neighbours, unit, prior, (epsilon, delta)) in enumerate(
            product((REPLACE, ADD_REMOVE), UNITS, PRIORS, BUDGETS)
        ):
            ledger = Ledger(Path(folder) / f"{k}.sqlite")
            ledger.open_dataset("people", *CAP)  # for replaced rows: it takes charges of either kind
            order = PrivateOrder(
                table=Path("table.csv"),
                schema=None,
                out=Path("out"),
                epsilon=epsilon,
                delta=delta,
                dataset="people",
                neighbours=neighbours,
                prior=prior,
                ledger=ledger.path,
            )
            rho = make_budget(epsilon, delta, persons=unit == ALL_ROWS).gaussian_rho
            Account(order, unit).charge(rho)
            told = f"{neighbours}, {unit} rows, {'a' if prior else 'no'} prior, δ = {float(delta):g}"
            found += [f"{told}: {words}" for words in wrongly_charged(ledger, "people", order, unit, rho)]
            found += [f"{told}: {words}" for words in wrongly_counted(ledger, order)]
    return found


def wrongly_charged(ledger, dataset, order, unit, rho):
    """In what the one charge of a dataset differs from an order for persons of so many rows, in words."""
    charges = [event for event in ledger.history(dataset) if event.kind == "charge"]
    if len(charges) != 1:
        yield f"{len(charges)} charges for one release"
        return
    (charge,) = charges
    promised = {
        "ε": (charge.amount.epsilon, exact(order.epsilon, "epsilon")),
        "δ": (charge.amount.delta, exact(order.delta, "delta")),
        "ρ": (Fraction(charge.quecto_rho or 0, 10**30), rho or Fraction(0)),
    }
    for name, (charged, promise) in promised.items():
        if not promise <= charged <= promise * (1 + Fraction(1, 10**6)) + Fraction(1, 10**9):
            yield f"{name} = {float(charged):g} was charged, {float(promise):g} was promised"
    if charge.rows_per_person != unit:
        yield f"the charge covers {charge.rows_per_person} rows of a person"
    if charge.neighbours != order.neighbours:
        yield f"the charge is for {charge.neighbours}"


def wrongly_counted(ledger, order):
    """In what a cap for replaced rows counts the one charge wrongly: what protects added ones counts as two of them."""
    (status,), epsilon, delta = ledger.datasets(), order.epsilon, order.delta
    if order.neighbours == ADD_REMOVE:
        epsilon, delta = 2 * epsilon, (1 + exp(epsilon)) * float(delta)
    if not epsilon <= status.summed.epsilon <= epsilon + Fraction(1, 10**8):
        yield f"ε counts as {float(status.summed.epsilon):g}, and is {float(epsilon):g}"
    if not (1 - 1e-12) * float(delta) <= float(status.summed.delta) <= (1 + 1e-6) * float(delta):
        yield f"δ counts as {float(status.summed.delta):g}, and is {float(delta):g}"


def checks():
    """All of them."""
    return [Check("charged as ordered", "the ledger writes down what was promised", charged_as_ordered)]


# Faults.


def neighbours_left_out():
    """A charge does not say which tables are neighbours."""

    def shorter(real):
        return lambda self, *given: real(self, *given[:6])

    return replaced((Ledger, "charge", shorter))


def charge_for_one_row():
    """Whatever is promised, the charge is for one row of a person."""

    def fewer(real):
        return lambda self, name, epsilon, delta, purpose, _, *rest: real(self, name, epsilon, delta, purpose, 1, *rest)

    return replaced((Ledger, "charge", fewer))


def delta_only_doubled():
    """In a cap for replaced rows, the δ of a release that protects added ones counts twice, and not 1 + e^ε times."""

    def doubled(real):
        def replacing(asked, rho):
            both, rho = real(asked, rho)
            return replace(both, atto_delta=2 * asked.atto_delta), rho

        return replacing

    return replaced((covey.ledger.status, "replacing", doubled))


def prior_for_nothing():
    """An order with a prior is charged nothing, since "it was paid for before"."""

    def free(real):
        def make(self, order, unit):
            real(self, order, unit)
            if order.prior is not None:
                self.ledger = None

        return make

    return replaced((Account, "__init__", free))


def rho_left_out():
    """A charge does not say its ρ, so that a ledger counts it as something else."""
    return replaced((Account, "charge", lambda real: lambda self, _: real(self, None)))


def faults():
    """All of them."""
    return [
        Fault("charge without neighbours", "charged as ordered", neighbours_left_out()),
        Fault("charge for one row of a person", "charged as ordered", charge_for_one_row()),
        Fault("δ of a removal and an addition only doubled", "charged as ordered", delta_only_doubled()),
        Fault("no charge with a prior", "charged as ordered", prior_for_nothing()),
        Fault("charge without its ρ", "charged as ordered", rho_left_out()),
    ]
