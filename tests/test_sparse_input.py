"""Sparse tables are taken as they are, and treated as the dense matrix with the same entries would be."""

import numpy as np
import pytest
import scipy.sparse as sp

import covey
from covey.errors import InputError, ParameterError

N, P = 60, 30
pytestmark = [
    pytest.mark.usefixtures("few_steps"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
]


def bits(seed=0, share=0.2):
    return (np.random.default_rng(seed).random((N, P)) < share).astype(np.uint8)


def fit(X, **options):
    return covey.PrivateSynthesizer(3.0, 1e-6, seed=1, **options).fit(X)


def outcome(X):
    """What comes of fitting X: the centres (with so little budget means alone, which is quick), or the error."""
    try:
        return covey.PrivateSynthesizer(0.01, 1e-6, seed=1).fit(X).centres.points.tobytes()
    except InputError as error:
        return InputError, str(error).split(".")[0].replace("a sparse array", "an array")


@pytest.mark.parametrize("options", [{}, {"at_most": [([0, 1, 2, 3, 4, 5], 1)]}, {"certificate_share": 0}])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix])
def test_sparse_and_dense_tables_give_the_same_release(form, options):
    X = bits()
    dense, sparse = fit(X, **options), fit(form(X), **options)
    assert (dense.centres.points == sparse.centres.points).all()
    assert dense.certificate == sparse.certificate
    drawn = sparse.sample(40)
    assert isinstance(drawn, sp.csr_array)
    assert (drawn.toarray() == dense.sample(40)).all()
    if dense.certificate is not None:
        assert sparse.certify(drawn) == dense.certify(drawn.toarray())


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_rows_come_back_in_the_type_they_came_in(kind):
    drawn = covey.PrivateSynthesizer(0.01, 1e-6, seed=1).fit(sp.csr_array(bits().astype(kind))).sample(10)
    assert drawn.dtype == kind
    assert outcome(sp.csr_array(bits().astype(kind))) == outcome(bits().astype(kind))


def with_entry(value, kind=np.float64):
    X = bits().astype(kind)
    X[3, 4] = value
    return sp.csr_array(X)


def explicit_zeros():
    X = sp.csr_array(bits())
    X.data[::3] = 0
    return X


def doubled(kind):
    """An entry that is given twice: 2 as a number, still true as a Boolean."""
    X = sp.csr_array(bits().astype(kind))
    data, indices = np.append(X.data, X.data[-1]), np.append(X.indices, X.indices[-1])
    indptr = X.indptr.copy()
    indptr[-1] += 1
    return sp.csr_array((data, indices, indptr), shape=X.shape)


def unsorted():
    X = sp.csr_array(bits())
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[a:b] = X.indices[a:b][::-1]
    X.has_sorted_indices = False
    return X


ODD = {
    "explicit zeros": explicit_zeros(),
    "doubled": doubled(np.int64),
    "doubled Booleans": doubled(bool),
    "unsorted": unsorted(),
    "two": with_entry(2),
    "minus one": with_entry(-1),
    "a half": with_entry(0.5),
    "not a number": with_entry(np.nan),
    "infinite": with_entry(np.inf),
    "complex": sp.csr_array(bits().astype(complex)),
    "empty rows": sp.csr_array(np.zeros((N, P), np.uint8)),
    "no rows": sp.csr_array((0, P), dtype=np.uint8),
    "no columns": sp.csr_array((N, 0), dtype=np.uint8),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_sparse_tables_are_treated_as_their_dense_neighbours(name):
    X = ODD[name]
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    assert outcome(X) == outcome(X.toarray())
    now = X.data, X.indices, X.indptr
    assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(before, now, strict=True))


def test_index_arrays_that_point_outside_are_refused_before_anything_follows_them():
    X = sp.csr_array(bits())
    X.indices[5] = P + 1000
    with pytest.raises(InputError, match="not a valid sparse matrix"):
        fit(X)
    X = sp.csr_array(bits())
    X.indptr[4] = 10**6
    with pytest.raises(InputError, match="not a valid sparse matrix"):
        fit(X)


def test_a_sparse_vector_is_no_matrix():
    with pytest.raises(InputError, match="a row per record"):
        fit(sp.coo_array(np.ones(5, np.uint8)))


def test_other_methods_say_how_to_go_on():
    X = sp.csr_array(bits())
    for synth in (
        covey.PrivateSynthesizer(1.0, method="paper"),
        covey.PrivateSynthesizer(1.0, domain=[2] * P),
        covey.AnonymousSynthesizer(5),
    ):
        with pytest.raises(InputError, match="toarray"):
            synth.fit(X)


def test_a_wide_table_that_does_not_fit_is_refused_with_the_numbers(monkeypatch):
    X = sp.csr_array((50, 30_000), dtype=np.uint8)
    monkeypatch.setattr("covey.core.arrays.physical_memory", lambda: 24 * 2**30)
    with pytest.raises(
        ParameterError, match=r"30,000 columns with 60,000 categories needs 3\d\.\d GiB and this machine allows 18 GiB"
    ):
        fit(X)


def test_wide_tables_run_from_end_to_end(monkeypatch):
    # Through the path of wide tables, made small: means and pairs are near the truth, and the certificate holds.
    monkeypatch.setattr("covey.methods.regain.bits.LOW_RANK_COLUMNS", 80)
    generator = np.random.default_rng(3)
    scores = generator.standard_normal((5000, 2)) @ generator.normal(0, 1, (2, 90)) - 1
    X = (generator.random((5000, 90)) < 1 / (1 + np.exp(-scores))).astype(np.uint8)
    blind = float(np.sqrt(np.mean(np.cov(X.T)[np.triu_indices(90, 1)] ** 2)))
    synth = covey.PrivateSynthesizer(10.0, 1e-9, seed=4).fit(sp.csr_array(X))
    Z = synth.sample(5000).toarray()
    assert covey.marginal_error(X, Z, 1) < 0.01
    assert covey.marginal_error(X, Z, 2) < 0.3 * blind
    assert covey.marginal_error(X, Z, 2) <= synth.certify(Z)[2]


def test_the_device_is_a_public_parameter():
    with pytest.raises(ParameterError, match="device must be"):
        covey.PrivateSynthesizer(1.0, device="abacus")
    assert (fit(bits(), device="cpu").centres.points == fit(bits()).centres.points).all()
