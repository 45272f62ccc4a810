"""What true rows give without privacy: drawn again with replacement, and a Chow-Liu tree with exact statistics."""


def prepare(method):
    import numpy as np
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    def tree(X, sizes, rows, rng):
        """Rows of the tree of pairs with the largest mutual information, each column given its parent's."""
        weights = np.zeros((len(sizes), len(sizes)))
        for i in range(len(sizes)):
            for j in range(i):  # the least has the most information; a weight of zero would be no edge
                weights[i, j] = -information(X[:, i], X[:, j], sizes[i], sizes[j]) - 1e-12
        order, parents = breadth_first_order(minimum_spanning_tree(weights), 0, directed=False)
        Z = np.empty((rows, len(sizes)), dtype=np.int64)
        Z[:, 0] = drawn(np.bincount(X[:, 0], minlength=sizes[0])[None], np.zeros(rows, dtype=int), rng)
        for child in order[1:]:
            parent = parents[child]
            counts = np.bincount(X[:, parent] * sizes[child] + X[:, child], minlength=sizes[parent] * sizes[child])
            Z[:, child] = drawn(counts.reshape(sizes[parent], sizes[child]), Z[:, parent], rng)
        return Z

    def information(x, y, a, b):
        joint = np.bincount(x * b + y, minlength=a * b).reshape(a, b) / len(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = joint * np.log(joint / (joint.sum(1, keepdims=True) * joint.sum(0)))
        return np.nansum(terms)

    def drawn(counts, given, rng):
        chances = np.cumsum(counts / np.maximum(counts.sum(1, keepdims=True), 1), axis=1)
        return np.minimum((rng.random(len(given))[:, None] > chances[given]).sum(1), counts.shape[1] - 1)

    def synthesize(table, domain, rows, epsilon, delta):
        X, rng = table.to_numpy(), np.random.default_rng(0)
        if method == "bootstrap":
            return X[rng.integers(0, len(X), rows)]
        return tree(X, list(domain.values()), rows, rng)

    return synthesize
