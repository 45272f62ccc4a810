"""OpenDP's synthesizers (its extra "mbi"): MST and AIM under ρ-zCDP, on the public categories."""

import math
from fractions import Fraction


def rho_of(epsilon, delta):
    """The largest ρ for which ρ-zCDP gives (ε, δ), by the conversion of Canonne, Kamath and Steinke over many orders."""

    def proved(rho):
        orders = (1 + math.exp(i / 200 - 6) for i in range(1, 4000))
        return min((a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a) for a in orders)

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if proved(middle) <= math.log(delta) else (low, middle)
    return low


def rounded_up(a, b):
    """a + b, rounded up."""
    total = a + b
    return math.nextafter(total, math.inf) if Fraction(total) < Fraction(a) + Fraction(b) else total


def accepted(rho, edges):
    """A ρ just below, or the same, with which OpenDP 0.16's MST does not refuse its own charges.

    It divides a twentieth of ρ by the number of edges and adds the parts up again, rounding up: mostly to a little more than
    the whole. Beyond sixteen columns no ρ that we tried is accepted.
    """
    if edges > 15:
        return rho

    def refused(rho):
        multiway = math.nextafter(math.nextafter(rho - rho * 0.5, 0), 0)
        select = math.nextafter(math.nextafter(multiway - multiway * 0.9, 0), 0)
        part, total = math.nextafter(select / edges, 0), 0.0
        for _ in range(edges):
            total = rounded_up(total, part)
        return total > select

    return next((rho * (1 - i * 1e-7) for i in range(20_000) if not refused(rho * (1 - i * 1e-7))), rho)


def prepare(method):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")

    def synthesize(table, domain, rows, epsilon, delta):
        rho = rho_of(epsilon, delta)
        if method == "mst":
            rho = accepted(rho, len(domain) - 1)
        context = dp.Context.compositor(
            data=pl.from_pandas(table).lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho),
        )
        algorithm = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}[method]()
        keys = {name: list(range(size)) for name, size in domain.items()}
        found = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()
        # It adds a category for what is in no key; rows that noise puts there are given the first category.
        return found.synthesize(rows).fill_null(0).to_pandas()

    return synthesize
