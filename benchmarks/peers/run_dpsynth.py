"""google/dpsynth from the folder PEERS/dpsynth: MST (its default), SWIFT and AIM on the public domain.

SWIFT at its defaults builds cliques of up to ten million cells and does not finish; it gets pairs and cliques of 10,000 cells
("swift-large": 100,000).
AIM gets pairs and models of at most a megabyte, which its documentation recommends for quick experiments. SWIFT's calibration
begins with a budget of zero and divides by it: it begins with next to nothing here, and finds what it would have found.
A column with bounds in place of a number of categories is a number: dpsynth cuts it at private quantiles, 32 as is its default.
Its search for a budget fails there with dp-accounting 0.6.0; it gets the ρ of a Gaussian mechanism with exactly this ε and δ.
"""

import itertools
import math
import os
import sys

CELLS, LARGE, STEPS, NOTHING = 10_000, 100_000, 1_000, 1e-9


def prepare(method):
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "dpsynth"))
    import dpsynth
    import mbi
    import numpy as np
    from dpsynth.discrete_mechanisms import accounting, aim, discrete, mst, swift
    from scipy.optimize import brentq
    from scipy.stats import norm

    if method.startswith("swift"):
        converted = accounting.zcdp_to_gdp
        accounting.zcdp_to_gdp = lambda rho: max(converted(rho), NOTHING)

    def synthesize(table, domain, rows, epsilon, delta):
        pairs = list(itertools.combinations(domain, 2))
        inner = {
            "mst": lambda: mst.MSTConfig(),
            "swift": lambda: swift.SWIFTConfig(workload=pairs, max_clique_size=CELLS, pgm_iters=STEPS),
            "swift-large": lambda: swift.SWIFTConfig(workload=pairs, max_clique_size=LARGE, pgm_iters=STEPS),
            "aim": lambda: aim.AIMConfig(workload=pairs, max_model_size=1),
        }[method]()
        if any(isinstance(kind, list) for kind in domain.values()):
            return mixed(inner, table, domain, epsilon, delta)
        data = mbi.Dataset(
            {name: table[name].to_numpy() for name in domain}, mbi.Domain(tuple(domain), tuple(domain.values()))
        )
        mechanism = discrete.DiscreteConfig(mechanism=inner).calibrate(epsilon=epsilon, delta=delta)
        found = mechanism(np.random.default_rng(0), data).synthetic_data
        return {name: np.asarray(found.data[name]) for name in domain}

    def mixed(inner, table, domain, epsilon, delta):
        known = {
            name: dpsynth.NumericalAttribute(*kind, interval_handling="sample")
            if isinstance(kind, list)
            else dpsynth.CategoricalAttribute(possible_values=list(range(kind)))
            for name, kind in domain.items()
        }
        config = dpsynth.TabularConfig(domains=known, discrete_mechanism=inner)
        rho = brentq(lambda rho: lost(epsilon, math.sqrt(2 * rho)) - delta, 1e-6, 100)
        return config.configure(zcdp_rho=rho)(np.random.default_rng(), table).synthetic_data

    def lost(epsilon, mu):
        left, right = norm.logcdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return math.exp(left) - math.exp(epsilon + right)

    return synthesize
