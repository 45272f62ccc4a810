"""The paper's own pieces: bodies, coverings, partitions, blocks, private directions."""
