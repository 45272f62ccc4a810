"""Arrays of a caller, read and checked, and synthetic rows in the caller's type again; tables are in `reading`.

Three kinds: bits, category codes, and real vectors in a body K. Reading happens on the owner's machine before any budget is
spent, so it may fail and its messages may speak of the array. What is remembered is the form alone: type, sparseness, frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from covey.core.arrays import Array, Integers
from covey.core.paper.bodies import Body, ProductOfSimplices
from covey.core.tables.counts import Batch, canonical, is_sparse
from covey.core.tables.domain import Domain
from covey.errors import InputError, ParameterError, whole_number
from covey.table.frames import NumberFrame, frame_origin, numbers_of


@dataclass(frozen=True)
class Form:
    """The type that arrays came in, and go out in."""

    dtype: np.dtype[Any]
    sparse: bool = False
    frame: NumberFrame | None = None
    own_types: bool = True  # whether each column of a frame gets its own type back

    def restore(self, rows: Array) -> Any:
        """One part of synthetic rows in the caller's type."""
        return (csr_array(rows) if self.sparse else rows).astype(self.dtype, copy=False)

    def join(self, parts: list[Any]) -> Any:
        """All parts together."""
        if self.sparse:
            return parts[0] if len(parts) == 1 else vstack(parts, format="csr")
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return rows if self.frame is None else self.frame.restore(rows, self.own_types)


# Arrays.


def read_matrix(X: Any) -> tuple[Array, Form]:
    """A dense array of numbers with a row per record, or a frame of them."""
    frame = None
    if isinstance(X, str | PathLike):
        raise InputError(
            f"X is the path {str(X)!r}, and a file needs a schema that says what its columns hold: give schema=…, for example "
            "covey.Schema.draft(path), checked and confirmed."
        )
    if (origin := frame_origin(X)) is not None:
        X, frame = numbers_of(X, origin)
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
    return np.asarray(X), Form(X.dtype if typed else np.dtype(np.int64), frame=frame)


def read_bits(X: Any, sparse: bool = False) -> tuple[Batch, Form]:
    """Records of 0 and 1, dense, or where the method allows it sparse."""
    if sparse and is_sparse(X):
        return _read_sparse(X)
    matrix, form = read_matrix(X)
    if matrix.dtype.kind != "b" and not ((matrix == 0) | (matrix == 1)).all():
        raise InputError(
            "X must hold only 0 and 1. For categories give their numbers, domain=[…]; for real-valued records the "
            "convex set they lie in, for example body=covey.bodies.Box(lower, upper)."
        )
    return (matrix if matrix.dtype.kind != "f" else matrix.astype(np.uint8)), form


def _read_sparse(X: Any) -> tuple[Batch, Form]:
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
    return rows.astype(np.uint8), Form(X.dtype, sparse=True)


def read_reals(X: Any, body: Body) -> tuple[Array, Form]:
    """Real vectors, which need not lie in the body: they are projected onto it later, one by one."""
    matrix, form = read_matrix(X)
    if matrix.shape[1] != body.dimension:
        raise InputError(f"X has {matrix.shape[1]} columns and body has dimension {body.dimension}.")
    if form.dtype.kind == "f" or not isinstance(body, ProductOfSimplices):
        # Averages of integers are not integers.
        form = Form(np.dtype(np.float64), frame=form.frame, own_types=False)
    return matrix, form


def read_codes(X: Any, domain: Domain) -> tuple[Integers, Form]:
    """Category codes; they come back in the type they came in, where that holds the whole domain."""
    matrix, form = read_matrix(X)
    if matrix.shape[1] != len(domain.sizes):
        raise InputError(f"X has {matrix.shape[1]} columns and domain names {len(domain.sizes)} attributes.")
    codes = matrix.astype(np.int64)
    if (codes != matrix).any() or (codes < 0).any() or (codes >= domain.counts).any():
        raise InputError("X must hold category codes 0, …, c − 1 of the declared domain.")
    dtype = np.promote_types(form.dtype, np.min_scalar_type(max(domain.sizes) - 1))
    return codes, Form(dtype if dtype.kind in "iu" else np.dtype(np.int64), frame=form.frame, own_types=False)


# Public parameters about records.

Limits = Sequence[tuple[Sequence[int], int]]


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
