"""private-pgm from the folder PEERS/private-pgm: its MST and its AIM on all pairs, with its own defaults.

AIM's models may have 80 megabytes by default, with which it takes many hours, as its own documentation says; "aim-small" has one,
which it recommends for a first look.
"""

import itertools
import os
import sys


def prepare(method):
    place = os.path.join(os.environ["PEERS"], "private-pgm")
    sys.path[:0] = [os.path.join(place, "src"), os.path.join(place, "mechanisms")]
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
        options = {"max_model_size": 1.0} if method == "aim-small" else {}
        _, found = AIM(epsilon, delta, **options).run(data, pairs, num_synth_rows=rows)
        return found.df[list(domain)]

    return synthesize
