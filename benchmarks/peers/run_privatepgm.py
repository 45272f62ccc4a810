"""private-pgm from the folder PEERS/private-pgm: its MST and its AIM on all pairs, with its own defaults.

AIM's models may have 80 megabytes by default and it may go 16 rounds for each column, which takes many hours, as its own
documentation says. "aim-small" has one megabyte, which it recommends for a first look, and two rounds for each column; "aim-hour"
has eight and four. Both have double precision: at single precision probabilities became NaN after 22 rounds.
"""

import itertools
import os
import sys

SMALLER = {"aim-small": (1.0, 2), "aim-hour": (8.0, 4)}  # megabytes, and rounds for each column


def prepare(method):
    place = os.path.join(os.environ["PEERS"], "private-pgm")
    sys.path[:0] = [os.path.join(place, "src"), os.path.join(place, "mechanisms")]
    if method in SMALLER:
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
        options = {}
        if method in SMALLER:
            size, rounds = SMALLER[method]
            options = {"max_model_size": size, "rounds": rounds * len(domain)}
        _, found = AIM(epsilon, delta, **options).run(data, pairs, num_synth_rows=rows)
        return found.df[list(domain)]

    return synthesize
