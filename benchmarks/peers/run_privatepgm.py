"""private-pgm from the folder PEERS/private-pgm: its MST and its AIM on all pairs, with its own defaults.

AIM's models may have 80 megabytes by default and it may go 16 rounds for each column, which takes many hours, as its own
documentation says. "aim-small" has one megabyte, which it recommends for a first look, two rounds for each column, and double
precision: at single precision probabilities became NaN after 22 rounds.
"""

import itertools
import os
import sys


def prepare(method):
    place = os.path.join(os.environ["PEERS"], "private-pgm")
    sys.path[:0] = [os.path.join(place, "src"), os.path.join(place, "mechanisms")]
    if method == "aim-small":
        os.environ["JAX_ENABLE_X64"] = "1"
    from mbi import Dataset, Domain

    if method == "mst":
        from mst import MST
    else:
        from aim import AIM

    def synthesize(table, domain, rows, epsilon, delta):
        data = Dataset(table, Domain.fromdict(dict(domain)))
        if method == "mst":
            return MST(data, epsilon, delta).df[list(domain)]
        pairs = [(pair, 1.0) for pair in itertools.combinations(domain, 2)]
        options = {"max_model_size": 1.0, "rounds": 2 * len(domain)} if method == "aim-small" else {}
        _, found = AIM(epsilon, delta, **options).run(data, pairs, num_synth_rows=rows)
        return found.df[list(domain)]

    return synthesize
