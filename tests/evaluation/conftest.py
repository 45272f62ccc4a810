"""Bundles to evaluate are those that the tests of releases make."""

from tests.release.conftest import averaged, bundles, fitted, folder, released, visits

__all__ = ["averaged", "bundles", "fitted", "folder", "released", "visits"]
