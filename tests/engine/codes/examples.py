"""A categorical table that tests share."""

import numpy as np

from covey.engine.codes.domain import Domain

DOMAIN = Domain((3, 2, 4), (True, False, False))


def table(seed, n=4000, sizes=(3, 2, 4)):
    """Rows of a mixture of two products of categorical laws."""
    generator = np.random.default_rng(seed)
    latent = generator.integers(0, 2, n)
    laws = [generator.dirichlet(np.ones(c), 2) for c in sizes]
    return np.column_stack(
        [[generator.choice(c, p=law[z]) for z in latent] for c, law in zip(sizes, laws, strict=True)]
    )
