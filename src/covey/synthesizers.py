"""The two synthesizers: fit on a table, then sample as many rows as you like."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from covey.core.arrays import Array, Integers, require_memory
from covey.core.draw.balanced import keep_limits, sample_bits, sample_categories, share_out
from covey.core.draw.rounding import bootstrap, one_hot, round_bits, round_categories
from covey.core.fit.devices import find_device
from covey.core.fit.spectrum import Spectrum
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.bodies import Body, Cube, ProductOfSimplices
from covey.core.tables.counts import require_exact
from covey.core.tables.distance import bit_distances, category_distances
from covey.core.tables.domain import Domain
from covey.core.tables.moments import moments
from covey.core.tables.sparse import Batch, canonical, is_sparse
from covey.core.threads import blas_threads, processors
from covey.engines.local import KEEP_BYTES, ArrayRows, StreamRows
from covey.engines.rows import Mapped, Rows
from covey.engines.spark import SparkRows, generate
from covey.entropy import SEEDED_MARK, Streams
from covey.errors import CoveyWarning, InputError, NotFittedError, ParameterError, whole_number
from covey.html import card, meter, shorten, tag
from covey.methods.categories import first_kernel
from covey.methods.mixed import Mixture
from covey.methods.paper import PaperParameters, paper_parameters, private_centres
from covey.methods.records import Limit, Records, boolean_records, plain_records, real_records
from covey.methods.regain import (
    CERTIFICATE_SHARE,
    declared_coding,
    expect_noise,
    refuse_too_wide,
    regain_bits,
    regain_categories,
)
from covey.methods.tree import METHODS, group_centres
from covey.privacy.budget import PrivacyStatement, check_delta, exact, make_budget
from covey.privacy.certificate import Certificate
from covey.release.contents import AnonymousRelease, PrivateRelease
from covey.table.codec import Codec, EncodeLog
from covey.table.schema import Schema
from covey.table.sources import Table, joined, like, open_source
from covey.table.sparkframe import BatchEncoder, arrow_batches, is_spark, needed_columns, spark_schema
from covey.version import __version__

Limits = Sequence[tuple[Sequence[int], int]]
PART_ROWS = 1 << 18  # synthetic rows that are drawn, decoded and written at a time
NARROW = 500  # columns; moments of so many are summed while a table is read first
Draw = Callable[[WeightedPoints, int, Streams], Array]
Decode = Callable[[Any, np.random.Generator], Any]


@dataclass(frozen=True)
class Prepared:
    """A table as rows of category codes or cells. Private: it has no serializer, and its repr shows no record."""

    rows: Rows
    kind: str
    log: EncodeLog
    schema: Schema | None = None
    cells: bool = False

    @property
    def n(self) -> int:
        """The number of records, which is public."""
        return self.rows.n

    def __repr__(self) -> str:
        return f"Prepared({self.n} rows)"


@dataclass(frozen=True)
class Drawn:
    """m synthetic rows in parts. A part comes from a stream of its own: it is the same whenever and wherever it is drawn."""

    m: int
    _centres: WeightedPoints
    _draw: Draw
    _decode: Decode | None
    _dtype: np.dtype[Any]
    _sparse: bool
    _streams: Streams

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.m // PART_ROWS)

    def part(self, k: int) -> Any:
        """The rows of part k: an array, or with a schema a mapping of columns."""
        streams = self._streams.child(f"part {k}")
        with blas_threads(1):
            rows = self._draw(self._centres, min(PART_ROWS, self.m - k * PART_ROWS), streams)
        if self._decode is not None:
            return self._decode(rows.astype(np.int64), streams.postprocessing("decode"))
        return (csr_array(rows) if self._sparse else rows).astype(self._dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        return (self.part(k) for k in range(self.parts))


class _Synthesizer:
    """What both synthesizers share: reading an array, and sampling rows of the same kind from the centres."""

    _real = staticmethod(real_records)

    def __init__(self, body: Body | None, seed: int | None, schema: Schema | None) -> None:
        if body is not None and not isinstance(body, Body):
            raise ParameterError(f"body must be a convex body such as covey.bodies.Box, got {body!r}.")
        if schema is not None and not isinstance(schema, Schema):
            raise ParameterError(
                f"schema must be a covey.Schema, got {schema!r}. Load one with covey.Schema.load(path)."
            )
        self.body = body
        self.schema = schema
        self._codec = None if schema is None else Codec(schema)
        self._mixture: Mixture | None = None
        self._kind: Table | None = None
        self._seed = None if seed is None else whole_number(seed, "seed", 0)
        self._streams_taken = 0
        self._centres: WeightedPoints | None = None
        self._draw: Draw | None = None
        self._dtype: np.dtype[Any] = np.dtype(np.uint8)
        self._sparse = False

    @property
    def seeded(self) -> bool:
        """Whether a seed was given. Whatever a seeded run makes is not private."""
        return self._seed is not None

    def _next_streams(self) -> Streams:
        """Fresh randomness for one fit or sample. No key is kept, so that copies of a synthesizer share no noise."""
        self._streams_taken += 1
        if self._seed is None:
            return Streams.from_system()
        return Streams.from_seed(self._seed).child(f"call {self._streams_taken}")

    @property
    def centres(self) -> WeightedPoints:
        """The weighted centres in K that rows are drawn from."""
        if self._centres is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        return self._centres

    def sample(self, m: int) -> Any:
        """Draw m synthetic rows: an array of the kind that was fitted, or with a schema a frame of that kind.

        Costs no privacy, however often it is called.
        """
        parts = list(self.draw(check_rows(m, self.centres.points.shape[1])))
        if self._kind is not None:
            return like(self._kind, joined(parts))
        if len(parts) == 1:
            return parts[0]
        return vstack(parts, format="csr") if self._sparse else np.concatenate(parts)

    def draw(self, m: int) -> Drawn:
        """m synthetic rows that are drawn part by part when they are asked for, so m may be larger than the memory."""
        if self._draw is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        m = whole_number(m, "m", 1, "It counts the synthetic rows.")
        decode: Decode | None = None if self._codec is None else self._codec.decode
        if self._codec is not None and self._mixture is not None:
            decode = self._codec.decode_cells
        return Drawn(m, self.centres, self._draw, decode, self._dtype, self._sparse, self._next_streams())

    def sample_spark(self, spark: Any, m: int) -> Any:
        """m synthetic rows as a Spark frame: its executors draw the parts when they are needed, and the same ones each time."""
        if self.schema is None:
            raise ParameterError("Spark rows have names: give schema=….")
        schema, drawn = self.schema, self.draw(m)
        return generate(spark, drawn.parts, lambda k: arrow_batches(drawn.part(k), schema), spark_schema(schema))

    @property
    def width(self) -> int:
        """Encoded columns under the schema, which are public: what a sample's memory depends on."""
        if self._codec is None:
            raise ParameterError("only a synthesizer with a schema knows its width before fitting: give schema=….")
        return self._codec.width

    def prepare(self, table: Any, encoding: str = "utf-8") -> Prepared:
        """Read and encode a table under the schema. May fail on the table; spends nothing; what it returns is private.

        The table is read in parts, so it may be larger than memory. It is read again where it is too large to be kept.
        """
        if self._codec is None:
            raise ParameterError("only a synthesizer with a schema prepares tables: give schema=….")
        if is_spark(table):
            return self._prepare_spark(table, self._codec)
        codec, source = self._codec, open_source(table, self.schema, encoding)
        cells = self._mixture is not None
        rows = StreamRows(
            source.parts,
            lambda part: codec.encode_part(source.table(part), cells=cells),
            len(codec.names),
            self._ahead(),
            KEEP_BYTES,
        )
        return Prepared(rows, source.kind, rows.log, self.schema, cells)

    def _prepare_spark(self, frame: Any, codec: Codec) -> Prepared:
        columns, ignored = needed_columns(frame, codec.schema)
        rows = SparkRows(columns, BatchEncoder(codec, ignored), len(codec.names), self._ahead())
        return Prepared(rows, "spark", rows.log, self.schema, self._mixture is not None)

    def _ahead(self) -> Sequence[Callable[[Array], Any]]:
        """Kernels that `fit` will ask for whatever the data is: their sums are taken while the table is read first."""
        return ()

    def _encode(self, table: Any) -> Rows:
        """Rows of category codes of a table, prepared or not; only the kind of frame is remembered."""
        prepared = table if isinstance(table, Prepared) else self.prepare(table)
        if (prepared.schema, prepared.cells) != (self.schema, self._mixture is not None):
            raise ParameterError(
                "this table was prepared by another synthesizer, whose schema or method differs. Prepare it with this one."
            )
        self._kind = Table({}, 0, prepared.kind)
        return prepared.rows

    def _read_matrix(self, X: Any) -> Array:
        """An array with a row per record. Happens before any budget is spent, on the owner's machine."""
        self._sparse = False
        if is_sparse(X):
            raise InputError(
                "X is sparse, which method='regain' takes for records of 0 and 1. Here write it out: fit(X.toarray())."
            )
        typed = isinstance(X, np.ndarray)
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
        # The type of an array is its owner's choice. That of a list would follow from the values: it becomes int64.
        self._dtype = X.dtype if typed else np.dtype(np.int64)
        return np.asarray(X)

    def _read(self, X: Any) -> tuple[Records, Body]:
        """Records of bits, or of real numbers in the body."""
        X = self._read_matrix(X)
        if self.body is not None:
            if X.shape[1] != self.body.dimension:
                raise InputError(f"X has {X.shape[1]} columns and body has dimension {self.body.dimension}.")
            if self._dtype.kind == "f" or not isinstance(self.body, ProductOfSimplices):
                self._dtype = np.dtype(np.float64)  # averages of integers are not integers
            return self._real(X, self.body), self.body
        if X.dtype.kind != "b" and not ((X == 0) | (X == 1)).all():
            raise InputError(
                "X must hold only 0 and 1. For categories give their numbers, domain=[…]; for real-valued records the "
                "convex set they lie in, for example body=covey.bodies.Box(lower, upper)."
            )
        return boolean_records(X if X.dtype.kind != "f" else X.astype(np.uint8)), Cube(X.shape[1])

    def _read_sparse(self, X: Any) -> Batch:
        """Sparse records of 0 and 1, treated as the dense matrix with the same entries would be."""
        if X.ndim != 2:
            raise InputError(f"X must be a matrix with a row per record, got a sparse array of shape {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise InputError(f"X must hold numbers, got a sparse array of type {X.dtype}.")
        if not X.shape[0] or not X.shape[1]:
            raise InputError(f"X must have at least one row and one column, got shape {X.shape}.")
        try:
            rows = canonical(X)
        except (ValueError, TypeError, IndexError) as error:
            raise InputError(f"X is not a valid sparse matrix: {error}") from None
        if not np.isfinite(rows.data).all():
            raise InputError("X holds NaN or infinite values. Replace them before fitting.")
        if not (rows.data == 1).all():
            raise InputError("X must hold only 0 and 1. A sparse matrix may hold nothing else.")
        self._dtype, self._sparse = X.dtype, True
        return rows.astype(np.uint8)

    def _read_codes(self, X: Any, domain: Domain) -> tuple[Integers, np.dtype[Any]]:
        """Category codes, and the type they come back in: the one they came in, where that holds the whole domain."""
        X = self._read_matrix(X)
        if X.shape[1] != len(domain.sizes):
            raise InputError(f"X has {X.shape[1]} columns and domain names {len(domain.sizes)} attributes.")
        codes = X.astype(np.int64)
        if (codes != X).any() or (codes < 0).any() or (codes >= domain.counts).any():
            raise InputError("X must hold category codes 0, …, c − 1 of the declared domain.")
        kind = np.promote_types(self._dtype, np.min_scalar_type(max(domain.sizes) - 1))
        return codes, kind if kind.kind in "iu" else np.dtype(np.int64)

    def _draw_like_the_paper(self) -> Draw:
        """Bootstrapping and independent rounding, for the kind of records that were read."""
        body, onehot, codes = self.body, self._dtype.kind in "biu", self._holds_codes()

        def draw(centres: WeightedPoints, m: int, streams: Streams) -> Array:
            chosen = bootstrap(centres, m, streams.postprocessing("bootstrap"))
            rounding = streams.postprocessing("rounding")
            if body is None:
                return round_bits(centres.points, chosen, rounding)
            if isinstance(body, ProductOfSimplices) and onehot:
                drawn = round_categories(centres.points, chosen, body.sizes, rounding)
                return drawn if codes else one_hot(drawn, body.sizes)
            return np.asarray(centres.points[chosen])

        return draw

    def _holds_codes(self) -> bool:
        """Whether rows are category codes rather than one-hot columns."""
        return self._codec is not None or getattr(self, "domain", None) is not None

    def _draw_balanced(self) -> Draw:
        """Balanced rounding for bits and categories; averages stay as they are for numbers."""
        body, onehot, codes = self.body, self._dtype.kind in "biu", self._holds_codes()

        def draw(centres: WeightedPoints, m: int, streams: Streams) -> Array:
            public = streams.postprocessing("rows")
            if body is None:
                return sample_bits(centres, m, public)
            if isinstance(body, ProductOfSimplices) and onehot:
                domain = Domain(body.sizes, (False,) * len(body.sizes))
                drawn = sample_categories(centres, domain, m, public).astype(np.int64)
                return drawn if codes else one_hot(drawn, body.sizes)
            shares = share_out(centres.weights, m, public)
            return np.asarray(centres.points[public.permutation(np.repeat(shares.order, shares.size))])

        return draw


class PrivateSynthesizer(_Synthesizer):
    """Differentially private synthetic data, for replace-one neighbours, the number of rows n being public.

    Args:
        epsilon: the privacy budget ε > 0.
        delta: 0 for pure ε-DP; positive and below 1/n for (ε, δ)-DP, which is more accurate.
        method: "regain", accurate at ordinary sizes, or "paper", Algorithm 4 with the theorem's constants.
        schema: the public schema of a table with names, categories, numbers and dates; fit then takes a frame or a file.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        ordinal: which attributes of the domain are ordered (numbers, dates), by index.
        at_most: declared limits [(columns, L), …]: a record sets at most L of these 0/1 columns. They are public promises:
            records that break one are trimmed by a fixed rule before they are measured, and the output keeps them.
        rows_per_person: how many rows one person may have; the noise grows as group privacy demands.
        neighbours: "replace-one", the only notion there is here.
        certificate_share: the part of the budget that buys the accuracy certificate; 0 for none.
        noise: "covey" for covey's exact samplers, "opendp" for OpenDP's (extra covey[opendp]).
        body: the convex set K of real-valued records (method "paper").
        kappa: κ of method "paper"; for this and the five that follow, None takes the theorem's choice.
        t: the dimension of its subspace.
        alpha: the mesh of its lattice.
        b: its damping.
        split: how it shares ε among directions, weights and points.
        constants: "paper", or "improved" for our own proofs.
        device: where tables of more than 1,000 columns are fitted once they are measured: "cpu", or "cuda" with the extra
            covey[gpu]. Records never leave the processor.
        seed: makes a run reproducible for tests. A seeded run is not private and says so.
    """

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        *,
        method: Literal["regain", "paper"] = "regain",
        schema: Schema | None = None,
        domain: Sequence[int] | None = None,
        ordinal: Sequence[int] = (),
        at_most: Limits = (),
        rows_per_person: int = 1,
        neighbours: Literal["replace-one"] = "replace-one",
        certificate_share: float | Fraction = CERTIFICATE_SHARE,
        noise: Literal["covey", "opendp"] = "covey",
        body: Body | None = None,
        kappa: float | None = None,
        t: int | None = None,
        alpha: float | None = None,
        b: float | None = None,
        split: tuple[Any, Any, Any] | None = None,
        constants: Literal["paper", "improved"] | None = None,
        device: str = "cpu",
        seed: int | None = None,
    ) -> None:
        super().__init__(body, seed, schema)
        find_device(device)  # refused here, before any table is opened
        self.device = device
        self._budget = make_budget(epsilon, delta, rows_per_person)
        self.epsilon: Fraction = self._budget.epsilon
        self.delta: Fraction = self._budget.delta
        if method not in ("regain", "paper"):
            raise ParameterError(f"method must be 'regain' or 'paper', got {method!r}.")
        if neighbours != "replace-one":
            raise ParameterError(f"neighbours must be 'replace-one', got {neighbours!r}.")
        if noise not in ("covey", "opendp"):
            raise ParameterError(f"noise must be 'covey' or 'opendp', got {noise!r}.")
        if noise == "opendp" and seed is not None:
            raise ParameterError("noise='opendp' takes no seed: OpenDP draws from the operating system.")
        self.method = method
        self.noise = noise
        if schema is not None and self._codec is not None:
            schema.require_confirmed()
            flags = all(size == 2 for size in self._codec.domain_sizes)
            # A flag of two categories is one column of bits.
            width = len(self._codec.domain_sizes) if flags else self._codec.width
            refuse_too_wide(width, categories=not flags)
            if domain is not None or len(ordinal) or len(at_most):
                raise ParameterError("domain, ordinal and at_most come from the schema: leave them out.")
            domain, ordinal = (None, ()) if flags else (self._codec.domain_sizes, self._codec.ordinal)
            at_most = self._codec.limits if flags else ()
        self.domain = check_domain(domain, ordinal)
        self._limits = check_limits(at_most)
        self._share = exact(certificate_share, "certificate_share")
        if not 0 <= self._share < 1:
            raise ParameterError(f"certificate_share must lie in [0, 1), got {certificate_share}.")
        options: dict[str, Any] = {
            "kappa": kappa,
            "t": t,
            "alpha": alpha,
            "b": b,
            "shares": split,
            "constants": constants,
        }
        self._options = {name: value for name, value in options.items() if value is not None}
        if method == "paper":
            if self.delta or self.domain or self._limits or noise != "covey" or schema is not None:
                raise ParameterError(
                    "method 'paper' takes no delta, schema, domain, at_most or noise: it is pure ε-DP on K."
                )
            # Wrong parameters are refused here, before any table is opened.
            paper_parameters(1000, body or Cube(1), self._budget.amount, **self._options)
        elif self._options or body is not None:
            given = ", ".join([*self._options, *(["body"] if body is not None else [])])
            raise ParameterError(f"{given.replace('shares', 'split')}: only method='paper' takes this.")
        elif self.domain and self._limits:
            raise ParameterError("at_most is about 0/1 columns: it does not go with domain.")
        self.parameters: PaperParameters | None = None
        self.privacy: PrivacyStatement | None = None
        self.certificate: Certificate | None = None
        self.spectrum: Spectrum | None = None

    def fit(self, X: Any) -> Self:
        """Measure the table privately: this is the step that spends ε. X is not changed."""
        if self.method == "paper":
            self._fit_paper(X)
        elif self.domain is not None:
            self._fit_categories(X, self.domain)
        else:
            self._fit_bits(X)
        return self

    def _ahead(self) -> Sequence[Callable[[Array], Any]]:
        if self.domain is not None:
            return (first_kernel(self.domain),)
        return (moments,) if self.width // 2 <= NARROW and not self._limits else ()  # a flag has two categories

    def _fit_bits(self, X: Any) -> None:
        rows: Rows
        if self._codec is not None:
            rows = self._encode(X)
        else:
            rows = (boolean_records(self._read_sparse(X)) if is_sparse(X) else self._read(X)[0]).rows
        self._check_size(rows.n, rows.p)
        limits = [(columns, most) for columns, most in self._limits if most < len(columns)]
        if limits:
            if max(max(columns) for columns, _ in limits) >= rows.p:
                raise ParameterError(f"at_most names a column beyond the last one, {rows.p - 1}.")
            rows = Mapped(rows, Limit(limits))
        coding = declared_coding(rows.p, limits)
        result = regain_bits(
            rows, self._budget, self._share, coding, self.noise, self._next_streams(), find_device(self.device)
        )

        def draw(centres: WeightedPoints, m: int, streams: Streams) -> Array:
            bits = sample_bits(centres, m, streams.postprocessing("rows"))
            return keep_limits(bits, limits, streams.postprocessing("limits")) if limits else bits

        self._finish(result.cloud, draw, result.charges, rows.n, result.certificate, result.spectrum)

    def _fit_categories(self, X: Any, domain: Domain) -> None:
        rows: Rows
        if self._codec is not None:
            rows, kind = self._encode(X), np.dtype(np.int64)
        else:
            codes, kind = self._read_codes(X, domain)
            rows = ArrayRows(codes)
        self._check_size(rows.n, int(np.sum(domain.counts - 1)))
        result = regain_categories(rows, domain, self._budget, self._share, self.noise, self._next_streams())
        self._dtype = kind

        def draw(centres: WeightedPoints, m: int, streams: Streams) -> Array:
            return sample_categories(centres, domain, m, streams.postprocessing("rows"))

        self._finish(result.cloud, draw, result.charges, rows.n, result.certificate, result.spectrum)

    def _fit_paper(self, X: Any) -> None:
        records, body = self._read(X)
        self.check(records.rows.n)
        par = paper_parameters(records.rows.n, body, self._budget.amount, **self._options)
        _warn_if_noise(par)
        result = private_centres(records, body, par, self._next_streams())
        self.parameters = par
        self._finish(result.cloud, self._draw_like_the_paper(), result.charges, par.n, None)

    def _finish(
        self,
        cloud: WeightedPoints,
        draw: Draw,
        charges: Any,
        n: int,
        certificate: Certificate | None,
        spectrum: Spectrum | None = None,
    ) -> None:
        self._centres, self._draw, self.certificate, self.spectrum = cloud, draw, certificate, spectrum
        # PVEC and matrix Laplace noise are drawn in floating point: the guarantee is that of their ideal laws.
        ideal = "; ε-DP for the ideal noise law" if self._budget.pure else ""
        constants = f" with {self.parameters.constants} constants" if self.parameters else ""
        names = {"paper": f"Algorithm 4{constants}", "regain": "regain"}
        self.privacy = PrivacyStatement(self._budget, charges, n, names[self.method] + ideal, self.seeded)

    def check(self, n: int) -> None:
        """Refuse what the public size of the table makes impossible. A caller with a ledger asks before it charges."""
        check_delta(self.delta, n)
        require_exact(n, max(self.domain.sizes) if self.domain else 1)

    def _check_size(self, n: int, width: int) -> None:
        """Checks and advice that need the public size of the table."""
        self.check(n)
        noise = expect_noise(n, width, self._budget)
        if noise > 0.1:
            warnings.warn(
                f"with n = {n}, {width} columns and epsilon = {float(self.epsilon):g} the noise on a 2-way share has "
                f"standard deviation {noise:.2g}: expect noise, not data. More rows, a larger epsilon, a positive delta or "
                "fewer columns help.",
                CoveyWarning,
                stacklevel=4,
            )

    @property
    def n(self) -> int:
        """Rows of the fitted table, which are public."""
        if self.privacy is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        return self.privacy.n

    def release(self, m: int) -> PrivateRelease:
        """Draw m rows and put everything that may leave together, for `covey.release.bundle.write_bundle`."""
        if self.schema is None or self.privacy is None:
            raise ParameterError(
                "a release needs a schema and a fitted table: PrivateSynthesizer(…, schema=schema).fit(table)."
            )
        rows = self.draw(m)
        return PrivateRelease(
            rows, self.schema, self.centres, self.privacy, self.certificate, __version__, self.spectrum
        )

    def certify(self, Z: Any) -> dict[int, float]:
        """95% bounds, by degree, on the error of a table drawn from these centres: certificate plus exact distance."""
        if self.certificate is None:
            raise NotFittedError("there is no certificate: fit with method='regain' and a positive certificate_share.")
        Z = Z if self._codec is None else self._codec.encode(Z)[0]
        Z = canonical(Z) if is_sparse(Z) else np.asarray(Z)
        if self.domain is not None:
            distance = category_distances(Z.astype(np.int64), self.domain.sizes, self.centres)
        else:
            distance = bit_distances(Z.astype(np.uint8), self.centres)
        return self.certificate.for_table(distance)

    def __repr__(self) -> str:
        state = "not fitted" if self._centres is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self._centres is None else ""
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        return f"PrivateSynthesizer(epsilon={float(self.epsilon):g}{delta}, method={self.method!r}: {state}{mark})"

    def _repr_html_(self) -> str:
        """For notebooks: parameters before fitting; guarantee, budget and certificate after it."""
        facts: list[tuple[str, Any]] = [("Guarantee asked for", _promise(self)), ("Method", self.method)]
        mark = SEEDED_MARK if self.seeded else "not fitted"
        if self.privacy is None:
            facts.append(("Next", "call fit(table): this is the step that spends the budget"))
        else:
            whole = self._budget.amount
            shares = [(c.purpose, float(c.amount / whole)) for c in self.privacy.charges]
            facts[0] = ("Guarantee", str(self.privacy))
            facts += [
                ("Rows it has seen", f"{self.n:,}"),
                ("Centres", f"{len(self.centres):,}"),
                ("Budget", [tag("div", meter(share), f"{share:.1%} {purpose}") for purpose, share in shares]),
                ("Accuracy", self.certificate.sentence if self.certificate else "no certificate was bought"),
                ("Next", "sample(m): as many rows as you like, at no further cost"),
            ]
            mark = SEEDED_MARK if self.seeded else "differentially private"
        return card("PrivateSynthesizer", mark, [*facts, *_schema_facts(self.schema)])


def _promise(synth: PrivateSynthesizer) -> str:
    delta = f", δ = {float(synth.delta):g}" if synth.delta else ", pure"
    return f"differential privacy with ε = {float(synth.epsilon):g}{delta}"


def _schema_facts(schema: Schema | None) -> list[tuple[str, Any]]:
    """The columns of a schema, the first few by name."""
    if schema is None:
        return []
    names = [shorten(name, 30) for name in schema.names[:8]]
    more = f" and {len(schema.names) - len(names):,} more" if len(schema.names) > len(names) else ""
    return [("Columns", f"{', '.join(names)}{more}")]


def check_rows(m: Any, width: int) -> int:
    """How many rows to draw at once, or a refusal: rows of so many encoded columns must fit the memory."""
    rows = whole_number(m, "m", 1, "It counts the synthetic rows.")
    require_memory(
        8 * rows * width + 20 * width**2, f"a sample of {rows} rows", "Draw fewer rows at a time, or use draw(m)."
    )
    return rows


def check_domain(domain: Sequence[int] | None, ordinal: Sequence[int]) -> Domain | None:
    """The public domain, or a refusal."""
    if domain is None:
        if len(ordinal):
            raise ParameterError("ordinal names attributes of a domain: give domain=[…] as well.")
        return None
    sizes = tuple(whole_number(c, "domain", 1, "Each entry counts an attribute's categories.") for c in domain)
    if not sizes:
        raise ParameterError("domain must name at least one attribute.")
    places = {whole_number(a, "ordinal", 0) for a in ordinal}
    if places and max(places) >= len(sizes):
        raise ParameterError(f"ordinal names attribute {max(places)}, and domain has {len(sizes)}, counted from 0.")
    return Domain(sizes, tuple(a in places for a in range(len(sizes))))


def check_limits(limits: Limits) -> list[tuple[list[int], int]]:
    """Declared limits as lists of columns, each column in one set at most, or a refusal."""
    try:
        read = [([whole_number(c, "at_most column", 0) for c in cols], most) for cols, most in limits]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"at_most must list pairs (columns, limit): {error}") from None
    seen: set[int] = set()
    for columns, most in read:
        whole_number(most, "at_most limit", 0)
        if not columns or len(set(columns)) < len(columns) or seen & set(columns):
            raise ParameterError("at_most: each set needs columns, and each column belongs to one set at most.")
        seen |= set(columns)
    return read


def _warn_if_noise(par: PaperParameters) -> None:
    """Say, from public numbers alone, that the paper's constants will give noise."""
    # Noise on a coordinate of a damped mean, in units where the coordinate of a Boolean record is 0 or 1.
    sd = par.means_noise * float(np.sqrt(2 * par.p))
    if sd > 0.5:
        warnings.warn(
            f"with n = {par.n}, p = {par.p} and these parameters the paper's noise on a block mean has standard "
            f"deviation {sd:.2g} for columns between 0 and 1: expect noise, not data. Use method='regain', or more rows, "
            "a larger epsilon or fewer columns.",
            CoveyWarning,
            stacklevel=4,
        )


class AnonymousSynthesizer(_Synthesizer):
    """Anonymous synthetic data by microaggregation: every centre is the mean of at least `group_size` records.

    This is r-anonymity, NOT differential privacy: a group whose members agree on a column discloses it.

    Args:
        group_size: r, the least number of rows behind every centre; at least 2. It counts rows, not persons: where a person
            has up to k rows, r rows may be as few as r/k persons.
        method: "tree", the spectral tree; "paper", Algorithm 1; "mdav", the field's standard, for comparison; "best", the
            better of tree and paper.
        schema: the public schema of a table with names; fit then takes a frame or a file. Numbers and dates are averaged as
            they are, over at least r rows that have them, and rounded up or down to the field's precision.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        body: the convex set K that real-valued records lie in; None for records of 0 and 1.
        seed: makes the sampling reproducible, and is marked on the result.
    """

    _real = staticmethod(plain_records)

    def __init__(
        self,
        group_size: int,
        *,
        method: Literal["tree", "paper", "mdav", "best"] = "tree",
        schema: Schema | None = None,
        domain: Sequence[int] | None = None,
        body: Body | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(body, seed, schema)
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
        if sum(given is not None for given in (schema, domain, body)) > 1:
            raise ParameterError("give a schema, a domain or a body, only one of them.")
        self.domain = check_domain(domain, ())
        if self._codec is not None and self._codec.has_numbers:
            self._mixture = Mixture(self._codec)
            self.body = Cube(self._mixture.domain.total + len(self._mixture.at))
        elif self._codec is not None:
            self.body = ProductOfSimplices(self._codec.domain_sizes)
        elif self.domain is not None:
            self.body = ProductOfSimplices(self.domain.sizes)
        if body is not None and not 0 < body.radius < float("inf"):
            raise ParameterError("body must be bounded and not a single point. Intersect it with a Box or a Ball.")
        self.group_size = whole_number(group_size, "group_size", 2, "A group of one is a record.")
        self.method = method
        self.n: int | None = None
        self.covariance_loss: float | None = None
        self._agreeing: dict[str, int] | None = None

    def fit(self, X: Any) -> Self:
        """Group the records and average each group. X is not changed."""
        kind = columns = None
        if self._codec is not None and self._mixture is not None:
            columns = self._mixture.columns(self._collected(self._encode(X)))
            X = columns.records
        elif self._codec is not None:
            X = one_hot(self._collected(self._encode(X)), self._codec.domain_sizes)
        elif self.domain is not None:
            codes, kind = self._read_codes(X, self.domain)
            X = one_hot(codes, self.domain.sizes)
        records, body = self._read(X)
        if self.group_size > records.rows.n:
            raise ParameterError(
                f"group_size must not exceed the number of rows, {records.rows.n}, got {self.group_size}."
            )
        with blas_threads(processors()):
            result = group_centres(records, body, self.group_size, self.method)
        smallest = int(np.bincount(result.groups).min())
        if smallest < self.group_size:
            raise AssertionError(f"a group of {smallest} rows was formed; please report this.")
        self._centres = result.cloud
        self._draw = self._draw_like_the_paper() if self.method == "paper" else self._draw_balanced()
        if self._mixture is not None and columns is not None:
            self._centres = self._mixture.centres(result.cloud, columns, result.groups, self.group_size)
            self._agreeing = self._mixture.agreeing(columns, result.groups)
            self._draw = self._mixture.draw
        self.n, self.covariance_loss = records.rows.n, result.covariance_loss
        self._dtype = self._dtype if kind is None else kind
        return self

    def _collected(self, rows: Rows) -> Integers:
        """All records: grouping looks at every one of them again and again, so they must fit the memory."""
        if not isinstance(rows, StreamRows):
            raise ParameterError(
                "anonymous groups need all records in the memory of this machine. Collect the frame first, if it is small."
            )
        require_memory(24 * rows.n * self.width, f"grouping {rows.n} records", "Use `covey release`, or fewer rows.")
        return rows.records().astype(np.int64)

    def homogeneity(self) -> dict[Any, int]:
        """For each column (or field of the schema) how many groups agree on it entirely. Confidential: for the steward."""
        points = self.centres.points
        if self._agreeing is not None:
            return dict(self._agreeing)
        if not isinstance(self.body, ProductOfSimplices):
            return {i: int(np.sum((column == 0) | (column == 1))) for i, column in enumerate(points.T)}
        names: Sequence[Any] = self._codec.names if self._codec is not None else range(len(self.body.sizes))
        return {
            name: int(np.sum(points[:, at].max(axis=1) > 1 - 1e-5))
            for name, at in zip(names, self.body.blocks(), strict=True)
        }

    def release(self, m: int) -> AnonymousRelease:
        """Draw m rows and put everything that may leave together, for `covey.release.bundle.write_bundle`."""
        if self.schema is None or self.n is None or self.covariance_loss is None:
            raise ParameterError("a release needs a schema and a fitted table.")
        self.schema.require_confirmed()  # it goes out with the rows
        return AnonymousRelease(
            rows=self.draw(m),
            schema=self.schema,
            group_size=self.group_size,
            n=self.n,
            groups=self.groups,
            covariance_loss=self.covariance_loss,
            method=self.method,
            seeded=self.seeded,
            version=__version__,
        )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.centres)

    def __repr__(self) -> str:
        mark = f", {SEEDED_MARK}" if self.seeded else ""
        state = "not fitted" if self._centres is None else f"{self.groups} groups, not differentially private"
        return f"AnonymousSynthesizer(group_size={self.group_size}, method={self.method!r}: {state}{mark})"

    def _repr_html_(self) -> str:
        """For notebooks: parameters before fitting, groups after it; in either case what it is not."""
        facts: list[tuple[str, Any]] = [("Least group size", f"{self.group_size:,}"), ("Method", self.method)]
        if self._centres is None:
            facts.append(("Next", "call fit(table)"))
        else:
            loss = f"{self.covariance_loss:.4g}, computed on true data"
            facts += [("Records", f"{self.n:,}"), ("Groups", f"{self.groups:,}"), ("Covariance loss", loss)]
        if self.seeded:
            facts.append(("Seed", SEEDED_MARK))
        facts.append(("Caution", "not differentially private: a group that agrees on a column discloses it"))
        mark = "not fitted" if self._centres is None else "not differentially private"
        return card("AnonymousSynthesizer", mark, [*facts, *_schema_facts(self.schema)])
