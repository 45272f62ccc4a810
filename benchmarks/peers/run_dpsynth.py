"""google/dpsynth from the folder PEERS/dpsynth: MST (its default), SWIFT and AIM on the public domain.

SWIFT at its defaults builds cliques of up to ten million cells and does not finish; it gets pairs and cliques of 10,000 cells.
AIM gets pairs and models of at most a megabyte, which its documentation recommends for quick experiments. SWIFT's calibration
begins with a budget of zero and divides by it: it begins with next to nothing here, and finds what it would have found.
"""

import itertools
import os
import sys

CELLS, STEPS, NOTHING = 10_000, 1_000, 1e-9


def prepare(method):
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "dpsynth"))
    import mbi
    import numpy as np
    from dpsynth.discrete_mechanisms import accounting, aim, discrete, mst, swift

    if method == "swift":
        converted = accounting.zcdp_to_gdp
        accounting.zcdp_to_gdp = lambda rho: max(converted(rho), NOTHING)

    def synthesize(table, domain, rows, epsilon, delta):
        pairs = list(itertools.combinations(domain, 2))
        inner = {
            "mst": lambda: mst.MSTConfig(),
            "swift": lambda: swift.SWIFTConfig(workload=pairs, max_clique_size=CELLS, pgm_iters=STEPS),
            "aim": lambda: aim.AIMConfig(workload=pairs, max_model_size=1),
        }[method]()
        data = mbi.Dataset(
            {name: table[name].to_numpy() for name in domain}, mbi.Domain(tuple(domain), tuple(domain.values()))
        )
        mechanism = discrete.DiscreteConfig(mechanism=inner).calibrate(epsilon=epsilon, delta=delta)
        found = mechanism(np.random.default_rng(0), data).synthetic_data
        return {name: np.asarray(found.data[name]) for name in domain}

    return synthesize
