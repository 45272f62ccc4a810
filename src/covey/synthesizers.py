"""The two synthesizers: fit on a table, then sample as many rows as you like."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from covey.core.arrays import Array, require_memory
from covey.core.blocks import WeightedPoints
from covey.core.bodies import Body, Cube, ProductOfSimplices
from covey.core.rounding import bootstrap, one_hot, round_bits, round_categories
from covey.entropy import SEEDED_MARK, Streams
from covey.errors import CoveyWarning, InputError, NotFittedError, ParameterError, whole_number
from covey.methods.paper import (
    PaperParameters,
    anonymous_centres,
    paper_parameters,
    private_centres,
)
from covey.methods.records import Records, boolean_records, real_records
from covey.privacy.budget import PrivacyStatement, make_budget


class _Synthesizer:
    """What both synthesizers share: reading an array, and sampling rows of the same kind from the centres."""

    def __init__(self, body: Body | None, seed: int | None) -> None:
        if body is not None and not isinstance(body, Body):
            raise ParameterError(f"body must be a convex body such as covey.core.bodies.Box, got {body!r}.")
        self.body = body
        self._streams = Streams.from_system() if seed is None else Streams.from_seed(whole_number(seed, "seed", 0))
        self._centres: WeightedPoints | None = None
        self._dtype: np.dtype[Any] = np.dtype(np.uint8)
        self._samples_drawn = 0

    @property
    def seeded(self) -> bool:
        """Whether a seed was given. Whatever a seeded run makes is not private."""
        return self._streams.seeded

    @property
    def centres(self) -> WeightedPoints:
        """The weighted centres in K that rows are drawn from."""
        if self._centres is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        return self._centres

    def _read(self, X: Any) -> tuple[Records, Body]:
        """Check an array and turn it into records. Happens before any budget is spent, on the owner's machine."""
        try:
            X = np.asarray(X)
        except ValueError:
            raise InputError("X must be a matrix; its rows have different lengths.") from None
        if X.ndim != 2:
            raise InputError(f"X must be a matrix with a row per record, got an array of shape {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise InputError(f"X must hold numbers, got an array of type {X.dtype}.")
        if not len(X) or not X.shape[1]:
            raise InputError(f"X must have at least one row and one column, got shape {X.shape}.")
        if X.dtype.kind == "f" and not np.isfinite(X).all():
            raise InputError("X holds NaN or infinite values. Replace them before fitting.")
        self._dtype = X.dtype
        if self.body is not None:
            if X.shape[1] != self.body.dimension:
                raise InputError(f"X has {X.shape[1]} columns and body has dimension {self.body.dimension}.")
            return real_records(X, self.body), self.body
        if X.dtype.kind != "b" and not ((X == 0) | (X == 1)).all():
            raise InputError(
                "X must hold only 0 and 1. For real-valued records give the convex set they lie in, for example "
                "body=covey.core.bodies.Box(lower, upper)."
            )
        return boolean_records(X if X.dtype.kind != "f" else X.astype(np.uint8)), Cube(X.shape[1])

    def sample(self, m: int) -> Array:
        """Draw m synthetic rows, an array of the kind that was fitted. Costs no privacy, however often it is called."""
        centres = self.centres
        m, p = whole_number(m, "m", 1), centres.points.shape[1]
        require_memory(m * p * max(2, self._dtype.itemsize), f"a sample of {m} rows", "Draw fewer rows at a time.")
        streams = self._streams.child(f"sample {self._samples_drawn}")
        self._samples_drawn += 1
        chosen = bootstrap(centres, m, streams.postprocessing("bootstrap"))
        rounding = streams.postprocessing("rounding")
        if self.body is None:
            bits = round_bits(centres.points, chosen, rounding)
            return bits.view(np.bool_) if self._dtype.kind == "b" else bits.astype(self._dtype, copy=False)
        if isinstance(self.body, ProductOfSimplices) and self._dtype.kind in "biu":
            codes = round_categories(centres.points, chosen, self.body.sizes, rounding)
            return one_hot(codes, self.body.sizes).astype(self._dtype, copy=False)
        return np.asarray(centres.points[chosen])


class PrivateSynthesizer(_Synthesizer):
    """Differentially private synthetic data: ε-DP for replace-one neighbours, the number of rows n being public.

    Args:
        epsilon: the privacy budget ε > 0.
        method: "paper", Algorithm 4 of the paper.
        body: the convex set K that real-valued records lie in; None for records of 0 and 1.
        kappa, t, alpha, b, split: the paper's public parameters; None takes the theorem's choice. `split` gives the
            shares of ε for (projection, weights, points).
        constants: "paper" for the printed noise, "improved" for our sharper constants (docs/proofs/): still ε-DP.
        seed: makes a run reproducible for tests. A seeded run is not private and says so.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        method: Literal["paper"] = "paper",
        body: Body | None = None,
        kappa: float = 1 / 3,
        t: int | None = None,
        alpha: float | None = None,
        b: float | None = None,
        split: tuple[Any, Any, Any] | None = None,
        constants: Literal["paper", "improved"] = "paper",
        seed: int | None = None,
    ) -> None:
        super().__init__(body, seed)
        self._budget = make_budget(epsilon)
        self.epsilon: Fraction = self._budget.epsilon
        if method != "paper":
            raise ParameterError(f"method must be 'paper', got {method!r}.")
        self.method = method
        self._options: dict[str, Any] = {
            "kappa": kappa,
            "t": t,
            "alpha": alpha,
            "b": b,
            "shares": split,
            "constants": constants,
        }
        # Wrong parameters are refused here, before any table is opened.
        paper_parameters(1000, body or Cube(1), self.epsilon, **self._options)
        self.parameters: PaperParameters | None = None
        self.privacy: PrivacyStatement | None = None

    def fit(self, X: Any) -> Self:
        """Measure the table privately: this is the step that spends ε. X is not changed."""
        records, body = self._read(X)
        par = paper_parameters(records.rows.n, body, self.epsilon, **self._options)
        _warn_if_noise(par)
        result = private_centres(records, body, par, self._streams.child("fit"))
        self._streams = self._streams.child("fitted")  # a second fit draws fresh noise
        self._centres, self.parameters = result.cloud, par
        self.privacy = PrivacyStatement(
            self._budget, result.charges, par.n, f"Algorithm 4, {par.constants} constants", self.seeded
        )
        return self

    def __repr__(self) -> str:
        state = "not fitted" if self._centres is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self._centres is None else ""
        return f"PrivateSynthesizer(epsilon={float(self.epsilon):g}, method={self.method!r}: {state}{mark})"


def _warn_if_noise(par: PaperParameters) -> None:
    """Say, from public numbers alone, that the answer will be noise."""
    # Noise on a coordinate of a damped mean, in units where the coordinate of a Boolean record is 0 or 1.
    sd = par.means_noise * float(np.sqrt(2 * par.p))
    if sd > 0.5:
        warnings.warn(
            f"with n = {par.n}, p = {par.p} and these parameters the paper's noise on a block mean has standard "
            f"deviation {sd:.2g} for columns between 0 and 1: expect noise, not data. More rows, a larger epsilon "
            "or fewer columns help.",
            CoveyWarning,
            stacklevel=3,
        )


class AnonymousSynthesizer(_Synthesizer):
    """Anonymous synthetic data by microaggregation: every centre is the mean of at least `group_size` records.

    This is r-anonymity, NOT differential privacy: a group whose members agree on a column discloses it.

    Args:
        group_size: r, the least number of records (rows) behind every centre; at least 2.
        method: "paper", Algorithm 1 of the paper.
        body: the convex set K that real-valued records lie in; None for records of 0 and 1.
        seed: makes the sampling reproducible, and is marked on the result.
    """

    def __init__(
        self,
        group_size: int,
        *,
        method: Literal["paper"] = "paper",
        body: Body | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(body, seed)
        if method != "paper":
            raise ParameterError(f"method must be 'paper', got {method!r}.")
        if body is not None and not 0 < body.radius < float("inf"):
            raise ParameterError("body must be bounded and not a single point. Intersect it with a Box or a Ball.")
        self.group_size = whole_number(group_size, "group_size", 2, "A group of one is a record.")
        self.method = method
        self.n: int | None = None
        self.covariance_loss: float | None = None

    def fit(self, X: Any) -> Self:
        """Group the records and average each group. X is not changed."""
        records, _ = self._read(X)
        if self.group_size > records.rows.n:
            raise ParameterError(
                f"group_size must not exceed the number of rows, {records.rows.n}, got {self.group_size}."
            )
        result = anonymous_centres(records, self.group_size)
        smallest = int(np.bincount(result.groups).min())
        if smallest < self.group_size:
            raise AssertionError(f"a group of {smallest} rows was formed; please report this.")
        self._centres, self.n, self.covariance_loss = result.cloud, records.rows.n, result.covariance_loss
        return self

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.centres)

    def __repr__(self) -> str:
        mark = f", {SEEDED_MARK}" if self.seeded else ""
        state = "not fitted" if self._centres is None else f"{self.groups} groups, not differentially private"
        return f"AnonymousSynthesizer(group_size={self.group_size}, method={self.method!r}: {state}{mark})"
