"""NAPSU-MQ of twinify, from the folder PEERS/twinify: all tables of two columns, and 100 synthetic tables below each other.

As many tables, and the posterior found in the same way (Hamiltonian Monte Carlo, its default), as in its makers' own test of
coverage. Its noise is scaled for a row that is replaced, as covey's is.
"""

import itertools
import os
import sys

TABLES = 100


def prepare(method):
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "twinify"))
    import d3p.random
    import pandas as pd
    from twinify.napsu_mq.napsu_mq import NapsuMQInferenceConfig, NapsuMQModel

    def synthesize(table, domain, rows, epsilon, delta):
        names = list(domain)
        data = pd.DataFrame(
            {n: pd.Categorical(table[n].astype(str), [str(v) for v in range(domain[n])]) for n in names}
        )
        fit, draw = d3p.random.split(d3p.random.PRNGKey(), 2)
        pairs = list(itertools.combinations(names, 2))
        model = NapsuMQModel(queries=pairs, inference_config=NapsuMQInferenceConfig(method))
        fitted = model.fit(data, fit, epsilon, delta, show_progress=False)
        return fitted.generate(draw, TABLES, rows).astype(int)[names]

    return synthesize
