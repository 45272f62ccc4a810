"""An earlier release as public information: it helps where it is right, costs little where it is wrong, and must be public."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.engine.fit.shrinkage import denoise_histogram
from covey.engine.models.tables import method as tables
from covey.errors import InputError, ParameterError
from covey.release.bundle import write_bundle
from covey.release.verify import bundle_digest
from covey.tables.schema import Schema
from tests.entries import entry

FIELDS = [entry(f"c{j}", "string", enum=list("abcdef"), required=True) for j in range(6)]
SCHEMA = Schema.from_dict({"fields": FIELDS})
N = 1500


def table(seed, tie=1, n=N):
    """Skewed columns, each tied to the next; `tie` is how, and may differ between years."""
    g = np.random.default_rng(seed)
    codes = np.minimum(g.geometric(0.4, (n, 6)) - 1, 5)
    for j in range(0, 6, 2):
        codes[:, j + 1] = np.where(g.random(n) < 0.6, (tie * codes[:, j] + 1) % 6, codes[:, j + 1])
    return pl.DataFrame({f"c{j}": np.array(list("abcdef"))[codes[:, j]] for j in range(6)})


def pairs(frame):
    codes = np.stack([frame[f"c{j}"].cast(pl.Enum(list("abcdef"))).to_physical().to_numpy() for j in range(6)], axis=1)
    hot = np.eye(6)[codes].reshape(len(codes), -1)
    return hot.T @ hot / len(codes)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Last year's bundles: of a table like this year's, and of one whose columns are tied otherwise."""
    home = tmp_path_factory.mktemp("years")
    for name, tie in (("alike", 1), ("otherwise", 5)):
        synth = covey.PrivateSynthesizer(20.0, 1e-9, schema=SCHEMA, seed=7).fit(table(1, tie))
        write_bundle(synth.release(N), home / name)
    return home


def error(prior, seed):
    X = table(2)
    rows = covey.PrivateSynthesizer(0.5, 1e-9, schema=SCHEMA, seed=seed, prior=prior).fit(X).sample(N)
    return np.abs(pairs(rows) - pairs(X)).sum() / 72


@pytest.mark.filterwarnings("ignore:with n = 1500:covey.errors.CoveyWarning")
def test_a_good_prior_lowers_the_error_and_a_wrong_one_costs_little(bundles, monkeypatch):
    monkeypatch.setattr(tables, "fit_steps", lambda *_: 150)
    none, good, wrong = (
        np.mean([error(prior, seed) for seed in range(2)]) for prior in (None, bundles / "alike", bundles / "otherwise")
    )
    assert good < 0.8 * none
    assert wrong < 1.15 * none


def test_one_way_counts_follow_a_prior_only_where_they_agree():
    truth = np.array([400.0, 300, 150, 100, 30, 20])
    found = {}
    for name, prior in (("none", None), ("right", truth / 1000), ("wrong", truth[::-1] / 1000)):
        g, errors = np.random.default_rng(3), []
        for _ in range(20):
            noisy = truth + 25 * g.standard_normal(6)
            public = np.random.default_rng(4)
            errors.append(np.abs(denoise_histogram(noisy, 25.0, 1000.0, False, public, prior) - truth).sum())
        found[name] = np.mean(errors)
    assert found["right"] < 0.6 * found["none"]
    assert found["wrong"] < 1.1 * found["none"]


@pytest.mark.usefixtures("few_steps")
def test_a_release_says_what_its_prior_was(bundles, tmp_path):
    digest = bundle_digest(bundles / "alike")
    synth = covey.PrivateSynthesizer(1.0, schema=SCHEMA, seed=1, prior=bundles / "alike").fit(table(2))
    write_bundle(synth.release(100), tmp_path / "bundle")
    assert digest in (tmp_path / "bundle" / "privacy.json").read_text()
    assert digest in (tmp_path / "bundle" / "README.md").read_text()
    assert covey.load(tmp_path / "bundle").privacy.prior == digest


def test_what_is_not_public_or_not_alike_is_refused_before_a_table_is_opened(bundles, tmp_path):
    def refused(prior, words, schema=SCHEMA, error=ParameterError, **options):
        with pytest.raises(error, match=words):
            covey.PrivateSynthesizer(1.0, schema=schema, prior=prior, **options)

    refused(bundles / "alike", "made with a seed", error=InputError)  # unseeded releases take no seeded prior
    other = Schema.from_dict({"fields": FIELDS[:5]})
    refused(bundles / "alike", "other columns than the schema: 'c5'", other, seed=1)
    wider = [{**FIELDS[0], "constraints": {"enum": list("abcdefg"), "required": True}}, *FIELDS[1:]]
    refused(bundles / "alike", "'c0' differently", Schema.from_dict({"fields": wider}), seed=1)
    refused(tmp_path / "nowhere", "no folder", error=InputError)
    refused(bundles / "alike", "needs schema", None)
    anonymous = covey.AnonymousSynthesizer(20, schema=SCHEMA, seed=1).fit(table(1))
    write_bundle(anonymous.release(100), tmp_path / "anonymous")
    refused(tmp_path / "anonymous", "not differentially private", error=InputError, seed=1)
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in (bundles / "alike").iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "README.md").write_text("changed")
    refused(broken, "changed after the bundle", error=InputError, seed=1)
    flags = [{"name": n, "type": "boolean", "constraints": {"required": True}} for n in "ab"]
    refused(bundles / "alike", "yes/no columns", Schema.from_dict({"fields": flags}), seed=1)
