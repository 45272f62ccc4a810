"""smartnoise-synth: MST, AIM and MWEM, with its defaults, on the public domain, so that no budget goes into preprocessing."""

import math

# MWEM holds a histogram of all cells, and a list of queries on it that outgrows memory first (16 flags take more than 8 GiB).
# Its documentation proposes groups of columns, which it then treats as independent: so many cells and columns to a group.
CELLS, COLUMNS = 10_000, 8


def prepare(method):
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    def labels(size):
        transformer = LabelTransformer(nullable=False)
        transformer.fit(list(range(size)))
        return transformer

    def synthesize(table, domain, rows, epsilon, delta):
        options = {"delta": delta}
        if method == "mwem":
            together = int(math.log(CELLS) / math.log(max(domain.values())))
            options = {"split_factor": min(together, COLUMNS, len(domain))}
        synth = Synthesizer.create(method, epsilon=epsilon, **options)
        synth.fit(table, transformer=TableTransformer([labels(size) for size in domain.values()]))
        return synth.sample(rows)[list(domain)].astype(int)

    return synthesize
