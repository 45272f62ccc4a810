"""Where randomness comes from.

Noise that protects people comes from ChaCha20 streams keyed by the operating system. A declared seed replaces
the key for tests and demonstrations; whatever is made from it is marked "seeded: not private".
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np
from randomgen import ChaCha

from covey.errors import whole_number

SEEDED_MARK = "seeded: not private"


@dataclass(frozen=True)
class Streams:
    """A family of independent random streams, one per purpose, derived from one 256-bit key."""

    key: bytes = field(repr=False)
    seeded: bool

    @classmethod
    def from_system(cls) -> Streams:
        """Key from the operating system's entropy."""
        return cls(secrets.token_bytes(32), seeded=False)

    @classmethod
    def of(cls, seed: int | None) -> Streams:
        """Streams of a seed, or fresh ones."""
        return cls.from_system() if seed is None else cls.from_seed(whole_number(seed, "seed", 0))

    @classmethod
    def from_seed(cls, seed: int) -> Streams:
        """Key from a declared seed: reproducible and therefore not private."""
        return cls(hashlib.sha256(b"covey seed %d" % seed).digest(), seeded=True)

    def _subkey(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self.key, digest_size=32).digest()

    def noise(self, purpose: str) -> np.random.Generator:
        """A cryptographic stream, for everything that protects a record."""
        return np.random.Generator(ChaCha(key=int.from_bytes(self._subkey(purpose), "little")))

    def postprocessing(self, purpose: str) -> np.random.Generator:
        """A fast stream for steps that see only released values (bootstrapping, rounding): no privacy rests on it.

        Its name is one under which no noise is drawn: a name has one key.
        """
        return np.random.Generator(np.random.SFC64(int.from_bytes(self._subkey(purpose), "little")))

    def child(self, purpose: str) -> Streams:
        """An independent family, for example one per call of `sample`."""
        return Streams(self._subkey("child " + purpose), self.seeded)
