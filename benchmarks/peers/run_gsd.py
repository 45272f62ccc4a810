"""Private-GSD from the folder PEERS/private_gsd: all pairs measured, and a table of 1,000 rows that evolves towards them.

Synthetic rows are drawn from that table. Fitting as many rows as the true table has, its default, takes many times as long.
"""

import os
import sys

FITTED = 1_000


def prepare(method):
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "private_gsd", "src"))
    from genetic_sd import GSDSynthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    def labels(size):
        transformer = LabelTransformer(nullable=False)
        transformer.fit(list(range(size)))
        return transformer

    def synthesize(table, domain, rows, epsilon, delta):
        synth = GSDSynthesizer(epsilon, delta)
        transformer = TableTransformer([labels(size) for size in domain.values()])
        synth.fit(table, transformer=transformer, categorical_columns=list(domain), N_prime=FITTED, seed=0)
        return synth.sample(rows).to_numpy().astype(int)

    return synthesize
