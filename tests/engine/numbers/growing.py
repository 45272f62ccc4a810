"""A tree grown on given codes with a plain source of noise."""

import numpy as np

from covey.engine.numbers.tree import Tree


def grown(codes, grid, sd, generator, laplace=False):
    tree, ordered = Tree(grid, len(codes)), np.sort(codes)
    for turn in range(grid.rounds):
        edges = tree.edges
        counts = np.diff(np.searchsorted(ordered, edges))
        noise = generator.laplace(0, sd / np.sqrt(2), len(counts)) if laplace else generator.normal(0, sd, len(counts))
        tree.see(counts + np.rint(noise).astype(np.int64), max(sd, 1e-6))
        if turn + 1 < grid.rounds:
            tree.grow()
    return tree


def incomes(n, seed, top=10**7):
    generator = np.random.default_rng(seed)
    drawn = np.exp(generator.normal(10.2, 0.9, n)).astype(np.int64).clip(0, top - 1)
    return np.where(generator.random(n) < 0.13, 0, drawn)
