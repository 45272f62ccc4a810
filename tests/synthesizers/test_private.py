"""The public surface: what a user of the library sees."""

import inspect
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

import covey
import covey.engine.models.bits as regain
from covey.engine.bodies import Ball, Box, HalfSpace, ProductOfSimplices
from covey.errors import CoveyWarning, InputError, NotFittedError, ParameterError
from covey.release import drawing as drawing
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field
from tests.clinic import PACKAGE, clinic, described

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]
X = np.random.default_rng(0).integers(0, 2, (500, 6), dtype=np.uint8)


def private(**options):
    return covey.PrivateSynthesizer(**{"epsilon": 1.0, "method": "paper", **options})


def test_public_names_are_pinned():
    rules = ["AtMost", "Condition", "Forbid", "LessEqual", "Linear"]
    classes = ["AnonymousSynthesizer", "Database", "Description", "Field", "Ledger", "PrivateSynthesizer", "Schema"]
    functions = ["covariance_loss", "load", "marginal_error", "verify_bundle", "write_bundle"]
    modules = ["bodies", "errors", "paper"]
    assert covey.__all__ == sorted([*rules, *classes, "SparkParquet", *functions, *modules])
    assert list(inspect.signature(covey.PrivateSynthesizer).parameters)[:1] == ["epsilon"]
    assert list(inspect.signature(covey.AnonymousSynthesizer).parameters)[:1] == ["group_size"]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.uint16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("make", "form"),
    [
        (private, np.asarray),
        (lambda: covey.AnonymousSynthesizer(group_size=5), np.asarray),
        (lambda: covey.PrivateSynthesizer(0.01, 1e-6), sp.csr_array),
    ],
)
def test_rows_come_back_in_the_kind_that_went_in(dtype, make, form):
    table = form(X.astype(dtype))
    Z = make().fit(table).sample(50)
    assert Z.dtype == (np.int64 if dtype in (bool, np.int32, np.float64) else dtype)  # a cell may have decided these
    assert isinstance(Z, type(table))
    assert set(np.unique(Z if form is np.asarray else Z.data)) <= {0, 1}
    assert not (table != form(X.astype(dtype))).max()


def test_fit_accepts_lists_read_only_and_strided_arrays():
    frozen = X.copy()
    frozen.setflags(write=False)
    for table in (X.tolist(), frozen, X[:, ::2], np.asfortranarray(X)):
        assert private().fit(table).sample(3).shape[0] == 3


def test_one_hot_records_get_one_category_per_block():
    sizes = [3, 2]
    generator = np.random.default_rng(2)
    records = np.hstack([np.eye(c, dtype=np.uint8)[generator.integers(0, c, 400)] for c in sizes])
    Z = covey.AnonymousSynthesizer(group_size=8, body=ProductOfSimplices(sizes)).fit(records).sample(500)
    assert Z.dtype == np.uint8
    assert (Z[:, :3].sum(axis=1) == 1).all()
    assert (Z[:, 3:].sum(axis=1) == 1).all()
    np.testing.assert_allclose(Z.mean(axis=0), records.mean(axis=0), atol=0.1)


def test_a_seed_reproduces_and_is_marked_everywhere():
    one, two = private(seed=5).fit(X), private(seed=5).fit(X)
    assert (one.sample(100) == two.sample(100)).all()
    anonymous = covey.AnonymousSynthesizer(5, seed=1).fit(X)
    assert (anonymous.sample(50) != anonymous.sample(50)).any()
    assert one.seeded
    assert "seeded: not private" in repr(one)
    assert "seeded: not private" in str(one.privacy)
    assert "seeded: not private" in repr(private(seed=5))
    assert "seeded: not private" in repr(covey.AnonymousSynthesizer(5, seed=1))


def test_without_a_seed_every_run_differs_and_nothing_is_marked():
    # A large ε keeps the centres inside the cube: corners would coincide by chance.
    one, two = private(epsilon=1000).fit(X), private(epsilon=1000).fit(X)
    assert (one.centres.points != two.centres.points).any()
    assert "seeded" not in repr(one)
    assert "replace-one" in str(one.privacy)
    again = one.centres.points.copy()
    one.fit(X)
    assert (one.centres.points != again).any()


@pytest.mark.parametrize("method", ["paper", "regain"])
def test_copies_of_a_synthesizer_share_no_noise(method):
    import copy
    import pickle

    synth = covey.PrivateSynthesizer(1000.0, method=method)
    others = [copy.deepcopy(synth), pickle.loads(pickle.dumps(synth))]
    points = [s.fit(X).centres.points for s in (synth, *others)]
    assert all(a.shape != b.shape or (a != b).any() for a, b in pairwise(points))


@pytest.mark.parametrize("method", ["paper", "regain"])
def test_a_failed_fit_does_not_give_its_noise_away(method, monkeypatch):
    synth = covey.PrivateSynthesizer(1.0, method=method, seed=3)
    reference = covey.PrivateSynthesizer(1.0, method=method, seed=3).fit(X).centres.points
    with monkeypatch.context() as patch:
        patch.setattr(PrivateSynthesizer, "_finish", lambda *a: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            synth.fit(X)
    again = synth.fit(X).centres.points
    assert again.shape != reference.shape or (again != reference).any()


def test_the_type_of_the_output_follows_public_things():
    assert private().fit([[0.0, 1], [1, 0]]).sample(3).dtype == private().fit([[0, 1], [1, 0]]).sample(3).dtype
    wide = covey.PrivateSynthesizer(1.0, domain=[300, 2]).fit(np.zeros((30, 2), dtype=np.int8)).sample(50)
    assert wide.min() >= 0
    assert np.iinfo(wide.dtype).max >= 299


def test_records_at_the_edge_of_floating_point_change_nothing_but_themselves():
    """No exception and no warning because of one record, however large."""
    half = covey.bodies.HalfSpace([1.0, 1.0, 0.0], 1.0)
    bodies = [
        covey.bodies.Intersection(half, Box([0, 0, 0], [1, 1, 1])),
        covey.bodies.Simplex(3),
        Ball(3),
        ProductOfSimplices([2, 1]),
    ]
    clean = np.random.default_rng(4).random((40, 3))
    for body in bodies:
        for value in (1.7e308, -1.7e308, 1e17, 1e200, 5e-324):
            dirty = clean.copy()
            dirty[7] = [value, 0, -value]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", CoveyWarning)
                assert np.isfinite(private(body=body, t=1, alpha=0.5).fit(dirty).centres.points).all()


def test_the_noise_does_not_come_from_numpys_global_generator():
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    a = private(epsilon=1000).fit(X).centres.points
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert (private(epsilon=1000).fit(X).centres.points != a).any()


FLAGS = covey.Schema(tuple(Field(name, "boolean", required=True) for name in "abcdef"))
AGES = covey.Schema((Field("a", "integer", 0, 1), FLAGS.fields[1]))
LEARNED = covey.Schema((Field("a", "integer", learn=True), FLAGS.fields[1]))
FRAME = {"who": ["x", "y"] * 20, **{name: ["true", "false"] * 20 for name in "abcdef"}}
MAKERS = {
    "flags": lambda: covey.PrivateSynthesizer(1.0, schema=FLAGS),
    "another schema": lambda: covey.PrivateSynthesizer(1.0, schema=AGES),
    "a learned one": lambda: covey.PrivateSynthesizer(1.0, 0.01, schema=LEARNED),
    "persons": lambda: covey.PrivateSynthesizer(1.0, schema=FLAGS, person="who"),
    "groups": lambda: covey.AnonymousSynthesizer(5, schema=AGES),
    "a package": lambda: covey.PrivateSynthesizer(1.0, schema=PACKAGE),
    "another package": lambda: covey.PrivateSynthesizer(1.0, schema=described(lambda _, v: v["covey"].pop("order"))),
}


@pytest.mark.parametrize(("one", "other"), [pair for pair in product(MAKERS, repeat=2) if pair[0] != pair[1]])
def test_records_prepared_for_another_synthesizer_are_refused(one, other):
    """Other codes, cells instead of codes, other weights: whether fitting them fails would depend on the records."""
    prepared = MAKERS[one]().prepare(clinic(40) if "package" in one else FRAME)
    with pytest.raises(ParameterError, match="prepared by another synthesizer"):
        MAKERS[other]().fit(prepared)


def test_sampling_before_fitting_is_refused():
    for synth in (private(), covey.AnonymousSynthesizer(group_size=3)):
        with pytest.raises(NotFittedError, match="fit"):
            synth.sample(5)


# Bad inputs, by the numbers that tests/desk/cli/test_bad_inputs.py uses too.


def test_bad_input_16_records_outside_the_body_are_projected():
    far = np.vstack([np.full((50, 2), 1e6), np.full((50, 2), -1e300)])
    near = np.vstack([np.ones((50, 2)), np.zeros((50, 2))])
    Z, same = (private(body=Box([0, 0], [1, 1]), seed=2).fit(rows).sample(10) for rows in (far, near))
    assert (same == Z).all()
    assert ((Z >= 0) & (Z <= 1)).all()


@pytest.mark.parametrize("size", [1, 0, -3, 2.5, "many", None, True])
def test_bad_input_21_impossible_group_sizes(size):
    with pytest.raises(ParameterError, match="group_size"):
        covey.AnonymousSynthesizer(group_size=size)


WRONG = {
    "epsilon": [0, -1, float("nan"), float("inf"), "abc", None],
    "kappa": [0, 1, -0.5, float("nan"), "x"],
    "alpha": [0, -1, float("inf")],
    "b": [0, -2, float("nan")],
    "split": [(0.5, 0.5, 0.5), (1, 0, 0), (0.5, 0.5), 3],
    "t": [-1, 1.5],
    "constants": ["best"],
    "method": ["magic"],
    "seed": [-1, "x"],
    "body": ["cube", HalfSpace([1.0], 1), Ball(2, 0.0)],
}
OF_REGAIN = {
    "delta": [-1.0, -0.1, 1.0, "x"],
    "neighbours": ["add-remove"],
    "rows_per_person": [0],
    "certificate_share": [1, -0.1],
    "domain": [[], [0], [2.5]],
    "at_most": [[([0, 1], -1)], [([0, 0], 1)], [([0, 1], 1), ([1, 2], 1)], 3],
    "kappa": [0.5],
    "t": [2],
    "body": [HalfSpace([1.0], 1), Ball(2, 0.0), Box([1.0], [1.0])],
}
TOGETHER = [
    *({"ordinal": [0]}, {"domain": [2], "ordinal": [1]}, {"domain": [2, 2], "at_most": [([0], 1)]}),
    *({"method": "paper", "delta": 1e-9}, {"method": "paper", "domain": [2]}),
    *({"body": Ball(2), **other} for other in ({"domain": [2, 2]}, {"at_most": [([0, 1], 1)]}, {"t": 1})),
]


@pytest.mark.parametrize(
    ("name", "value", "method"),
    [
        *((name, value, "paper") for name, values in WRONG.items() for value in values),
        *((name, value, "regain") for name, values in OF_REGAIN.items() for value in values),
    ],
)
def test_bad_inputs_23_and_26_impossible_parameters_are_refused_by_name_before_any_data(name, value, method):
    with pytest.raises(ParameterError) as caught:
        private(**{"method": method, name: value})
    assert name in str(caught.value) or "share" in str(caught.value)


@pytest.mark.parametrize("wrong", TOGETHER, ids="-".join)
def test_parameters_that_do_not_go_together_are_refused(wrong):
    with pytest.raises(ParameterError):
        covey.PrivateSynthesizer(1.0, **wrong)


@pytest.mark.parametrize("m", [0, -5, 2.0, "all", None, True, 10**15])
def test_bad_input_27_impossible_sample_sizes(m):
    with pytest.raises(ParameterError, match=r"m must|a sample of"):
        private().fit(X).sample(m)


def test_bad_input_28_a_covering_too_large_is_refused_before_allocation():
    with pytest.raises(ParameterError, match="alpha"):
        private(t=60, alpha=0.2).fit(np.zeros((100, 80), dtype=bool))
    with pytest.raises(ParameterError, match="cells"):
        private(t=7, alpha=0.4).fit(np.zeros((100, 2000), dtype=bool))


def test_bad_input_29_no_positive_weight_means_uniform_weights():
    clouds = [private(epsilon=1e-9, t=1, alpha=0.9, seed=seed).fit(X[:3]).centres for seed in range(40)]
    assert all(cloud.weights.sum() == pytest.approx(1) and np.isfinite(cloud.points).all() for cloud in clouds)
    # Which weights are positive is noise: of so many seeds one has none.
    assert any((cloud.weights == cloud.weights[0]).all() for cloud in clouds)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros(5),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros((2, 2, 2)),
        np.array([["a", "b"]]),
        [[0, 1], [2, 0]],
        [[0.5, 1.0]],
        [[0.0, float("nan")]],
        [[float("inf"), 0.0]],
        None,
        "table",
        [[1, 2], [3]],
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [private, lambda: covey.AnonymousSynthesizer(group_size=2)])
def test_arrays_that_are_no_table_are_refused_in_covey_words(make, table):
    with pytest.raises(InputError, match="X"):
        make().fit(table)


def test_rows_are_drawn_in_parts_that_are_the_same_whenever_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(drawing.MakeRows, "size", 100)
    X = np.random.default_rng(3).integers(0, 2, (400, 6))
    synth = covey.PrivateSynthesizer(5.0, 1e-6, seed=1).fit(X)
    drawn = synth.draw(250)
    assert drawn.parts == 3
    assert [len(part) for part in drawn] == [100, 100, 50]
    assert (drawn.part(2) == list(drawn)[2]).all()
    assert not (drawn.part(0) == drawn.part(1)).all()
    assert not (synth.draw(250).part(0) == drawn.part(0)).all()  # another call draws other rows
    assert synth.sample(250).shape == (250, 6)
    together = np.concatenate(list(synth.draw(20_000)))
    assert np.abs(together.mean(axis=0) - synth.centres.weights @ synth.centres.points).max() < 0.005


# Sparse tables are taken as they are, and treated as the dense matrix with the same entries would be.

N, P = 60, 30


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


def with_entry(value, kind=np.float64):
    X = bits().astype(kind)
    X[3, 4] = value
    return sp.csr_array(X)


def doubled(kind):
    """An entry that is given twice: 2 as a number, still true as a Boolean."""
    return sp.csr_array((np.ones(3, kind), [0, 0, 1], [0, 2, 3]), shape=(2, P))


ODD = {
    "doubled": doubled(np.int64),
    "doubled Booleans": doubled(bool),
    "two": with_entry(2),
    "minus one": with_entry(-1),
    "a half": with_entry(0.5),
    "not a number": with_entry(np.nan),
    "infinite": with_entry(np.inf),
    "complex": sp.csr_array(bits().astype(complex)),
    **{f"plain {kind}": sp.csr_array(bits().astype(kind)) for kind in ("?", "i1", "u2", "i8", "f4", "f8")},
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


def test_wide_tables_run_from_end_to_end(monkeypatch):
    # Through the path of wide tables, made small: means and pairs are near the truth, and the certificate holds.
    monkeypatch.setattr(regain, "LOW_RANK_COLUMNS", 80)
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
