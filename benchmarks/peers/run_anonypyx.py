"""MDAV-generic of anonypyx, groups of at least 20. Each group is released as its mean, or its most frequent category."""


def prepare(method):
    import anonypyx
    import pandas as pd

    def synthesize(table, domain, rows, epsilon, delta):
        flags = set(domain.values()) == {2}
        frame = table if flags else table.astype("category")
        anonymizer = anonypyx.Anonymizer(
            frame,
            k=20,
            algorithm="MDAV-generic",
            feature_columns=list(domain),
            generalisation_strategy="microaggregation",
        )
        groups = pd.DataFrame(anonymizer.anonymize())
        out = groups.loc[groups.index.repeat(groups["count"])] if "count" in groups else groups
        return out[list(domain)].astype(float).round().astype(int).sample(rows, replace=True)

    return synthesize
