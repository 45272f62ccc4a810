"""MDAV-generic of anonypyx, groups of at least 20, each released as its mean: flags are drawn with it, codes are rounded."""


def prepare(method):
    import anonypyx
    import numpy as np

    def synthesize(table, domain, rows, epsilon, delta):
        anonymiser = anonypyx.Anonymiser(
            table.astype(float),  # it centres columns in place, which pandas refuses for integers
            k=20,
            algorithm="MDAV-generic",
            generalisation_strategy="microaggregation",
        )
        found = anonymiser.anonymise()
        means = found[list(domain)].astype(float).to_numpy()
        means = np.repeat(means, found["count"], axis=0) if "count" in found else means
        generator = np.random.default_rng()
        means = means[generator.permutation(len(means))[:rows]]
        flags = np.array(list(domain.values())) == 2
        return np.where(flags, generator.random(means.shape) < means, np.rint(means)).astype(int)

    return synthesize
