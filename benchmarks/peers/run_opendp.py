"""OpenDP's synthesizers (its extra "mbi"): MST and AIM on the public categories, under pure ε or under ρ-zCDP."""

import math


def rho_of(epsilon, delta):
    """The largest ρ for which ρ-zCDP gives (ε, δ), by the conversion of Canonne, Kamath and Steinke over orders 1 + e^t."""

    def worst(rho):
        bounds = []
        for i in range(1, 4000):
            a = 1 + math.exp(i / 200 - 6)
            bounds.append((a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a))
        return min(bounds)

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) <= math.log(delta) else (low, middle)
    return low


def prepare(method):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")

    def synthesize(table, domain, rows, epsilon, delta):
        loss = {"rho": rho_of(epsilon, delta)} if delta else {"epsilon": epsilon}
        context = dp.Context.compositor(
            data=pl.from_pandas(table).lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(**loss),
        )
        algorithm = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}[method]()
        keys = {name: list(range(size)) for name, size in domain.items()}
        found = context.query(**loss).contingency_table(keys=keys, algorithm=algorithm).release()
        # It adds a category for what is in no key; rows that noise puts there are given the first category.
        return found.synthesize(rows).fill_null(0).to_pandas()

    return synthesize
