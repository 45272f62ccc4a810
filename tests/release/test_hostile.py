"""Bundles from strangers, with checksums to match: whatever was changed is refused in words, and nothing hangs or passes."""

import json
import os
import shutil

import numpy as np
import pytest

import covey
from covey.errors import CoveyError, InputError
from covey.release.bundle import _write_sums, write_bundle
from covey.release.verify import cite, verify_bundle
from covey.tables.schema import Field, Schema
from covey.workflow import resume

pytestmark = pytest.mark.usefixtures("few_steps")
NUMBER = np.random.default_rng(0)
TABLE = {
    "age": [int(x) for x in NUMBER.integers(0, 99, 200)],
    "ward": [str(x) for x in NUMBER.choice(["a", "b", "c"], 200)],
    "flag": [bool(x) for x in NUMBER.integers(0, 2, 200)],
}
SCHEMA = Schema(
    (Field("age", "integer", 0, 99), Field("ward", "string", enum=("a", "b", "c")), Field("flag", "boolean"))
)
ENDLESS = ["1e9999999", "1e99999999999", "1e-9999999", "1/0", "nan"]
NO_NUMBER = [10**400, 1e308, -1, True, None, [], {}]
NO_TEXT = [10**400, 1e308, -1, True, None, [], {}]


def brief(value):
    return str(value)[:30]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    release = covey.PrivateSynthesizer(20.0, schema=SCHEMA, seed=3).fit(TABLE).release(50)
    return write_bundle(release, tmp_path_factory.mktemp("sent") / "bundle")


@pytest.fixture
def copied(bundle, tmp_path):
    return shutil.copytree(bundle, tmp_path / "bundle")


def changed(folder, name, place, value):
    """A file of a bundle with one value changed, and checksums to match."""
    document = json.loads((folder / name).read_text())
    part = document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    (folder / name).write_text(json.dumps(document))
    _write_sums(folder)


def refused(folder):
    for read in (verify_bundle, cite, covey.load, resume):
        with pytest.raises(CoveyError):
            read(folder)


def test_the_bundle_itself_is_good(bundle):
    assert verify_bundle(bundle).rows == 50
    assert cite(bundle)["sha256"]


PRIVACY = {
    ("epsilon",): [*ENDLESS, *NO_NUMBER, "0", "-1"],
    ("delta",): [*ENDLESS, *NO_NUMBER, "-1", "0.5"],
    ("amount",): [*ENDLESS, *NO_NUMBER, "-1", "2", "21"],
    ("charges", 0, "amount"): [*ENDLESS, *NO_NUMBER, "-1", "21"],
    ("charges", 0, "delta"): [*ENDLESS, *NO_NUMBER, "-1", "1/2"],
    ("charges", 0, "purpose"): [*NO_TEXT, "another"],
    ("charges",): [[], None, {}, "x"],
    ("unused",): [None, [{"purpose": "x", "amount": "-1"}], [{"purpose": "x", "amount": "1e9999999"}]],
    ("rows_per_person",): [0, -1, 10**400, 1.5, "most", None, True],
    ("neighbours",): ["none", None, 1],
    ("noise",): [["loud"], [[]], None],
    ("seeded",): [None, 0, "no"],
    ("private",): [True, None],  # it was made with a seed
    ("guarantee",): ["perfect secrecy", None, 1],
    ("unit",): ["all of mankind", None],
    ("mu",): ["0.1", 1],
    ("n",): [10**400, -1, 1.5, True, None],
    ("mechanism",): [None, []],
    ("group_size",): [5, None],  # an anonymous bundle promises no ε
    ("about", "made"): [*ENDLESS, *NO_TEXT, "", "</script><script>alert(1)</script>", "2020-01-01\n<b>", "9" * 10**5],
    **{("about", name): [*ENDLESS, *NO_NUMBER, "-1"] for name in ("spent", "cap", "used")},
    **{("about", name): NO_TEXT for name in ("title", "owner", "purpose")},
}


@pytest.mark.parametrize(
    ("place", "value"), [(place, value) for place, values in PRIVACY.items() for value in values], ids=brief
)
def test_no_claim_of_privacy_passes_that_does_not_follow(copied, place, value):
    changed(copied, "privacy.json", place, value)
    refused(copied)


LISTS = [[[0]] * 1000, [[10**12]], [[0] * 1000], {"every": [10**9, 2]}, {"every": [40, 20]}, {"every": [True, 1]}]
MEASURED = {
    "of": [*NO_TEXT, "everybody"],
    "view": [*NO_TEXT, "sideways"],
    "law": [*NO_TEXT, "loud"],
    "purpose": [*NO_TEXT, "another"],
    "cut": ["no", 0, None],
    "total": ["no", 0, None],
    "per": [0, -1, 10**400, 1e308, True, None, "1", float("inf"), float("nan")],
    "sd": [-1, 10**400, 1e308, True, [], [1.0] * 4, "1", float("inf"), float("nan")],
    "sets": [*LISTS, None, "x", [["a"]], [[]]],
    "factors": [-1, 10**9, 0.0, True, None, []],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in MEASURED.items() for value in values], ids=brief
)
def test_no_measurement_passes_that_covey_would_not_write(copied, key, value):
    last = len(json.loads((copied / "measurements.json").read_text())["measurements"]) - 1
    for k in (0, last):
        changed(copied, "measurements.json", ("measurements", k, key), value)
        refused(copied)


@pytest.mark.parametrize(
    ("key", "value"), [("n", 10**18), ("n", 0), ("columns", ["x"] * 3), ("format", 2.0), ("format", True)]
)
def test_the_list_of_measurements_is_that_of_the_bundle(copied, key, value):
    changed(copied, "measurements.json", (key,), value)
    refused(copied)


def _with(name, change):
    return lambda arrays: arrays | {name: change(arrays[name])}


MODELS = {
    "negative weights": _with("weights", np.negative),
    "no weights": _with("weights", np.zeros_like),
    "weights of another sum": _with("weights", lambda weights: 2 * weights),
    "huge points": _with("points", lambda points: points * 1e308),
    "negative points": _with("points", np.negative),
    "points outside": _with("points", lambda points: points / 2),
    "huge start": _with("0 start", lambda start: start + 2**62),
    "start out of order": _with("0 start", np.flip),
    "empty ranges": lambda arrays: arrays | {"0 stop": arrays["0 start"]},
    "ranges of no length": lambda arrays: arrays | {"0 stop": arrays["0 stop"][:1]},
    "negative shares": _with("0 share", np.negative),
    "edges reversed": _with("0 edges", np.flip),
    "edges beyond": _with("0 edges", lambda edges: edges * 1000),
    "levels of another column": lambda arrays: (
        arrays | {"triples": np.array([[0, 1, 7]])} | {f"{a} level": np.array([0]) for a in (0, 1, 7)}
    ),
    "negative levels": lambda arrays: (
        arrays | {"triples": np.array([[0, 1, 2]])} | {f"{a} level": np.array([-5]) for a in (0, 1, 2)}
    ),
    "ranks of other columns": lambda arrays: arrays | {"score": np.zeros(3)},
    "endless spectrum": lambda arrays: arrays | {"spectrum": np.full(1000, 1e300)},
    "no arrays": lambda arrays: {},
}


@pytest.mark.parametrize("change", MODELS.values(), ids=list(MODELS))
def test_no_model_passes_that_rows_could_not_be_drawn_from(copied, change):
    with np.load(copied / "model.npz") as file:
        arrays = dict(file)
    np.savez(copied / "model.npz", **change(arrays))
    _write_sums(copied)
    refused(copied)


@pytest.mark.parametrize("name", ["README.md", "privacy.json", "model.npz", "SHA256SUMS", "more"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_whoever_reads_a_bundle_waits_for_no_pipe(copied, name, make):
    (copied / name).unlink(missing_ok=True)
    make(copied / name)
    refused(copied)


GROUPS = [
    *((("group_size",), size) for size in (-5, "10", 10**400, True)),
    *((("groups",), count) for count in (10**6, None)),
    *((("covariance_loss",), loss) for loss in (None, -1, 10**400)),
    *[(("epsilon",), "1e9999999"), (("charges",), []), (("private",), True), (("method",), 3), (("about", "made"), 7)],
]


def test_an_anonymous_bundle_promises_nothing_beside_its_groups(tmp_path):
    synth = covey.AnonymousSynthesizer(10, schema=SCHEMA, seed=1).fit(TABLE)
    sent = write_bundle(synth.release(20), tmp_path / "sent")
    assert verify_bundle(sent).rows == 20
    for k, (place, value) in enumerate(GROUPS):
        folder = shutil.copytree(sent, tmp_path / str(k))
        changed(folder, "privacy.json", place, value)
        for read in (verify_bundle, cite):
            with pytest.raises(InputError):
                read(folder)
