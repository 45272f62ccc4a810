"""What the tests of releases share: a table of visits with its schema, and what is made of it."""

import pytest

import covey
from covey.desk.demo import example_visits
from covey.release.bundle import write_bundle
from covey.tables.schema import Schema
from covey.tables.sources import read_table
from tests.few import few_steps


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    example_visits(path, 1500)
    schema = Schema.draft(read_table(path))
    return path, schema.confirm(schema.names)


@pytest.fixture(scope="module")
def fitted(visits):
    with pytest.MonkeyPatch.context() as patch:
        few_steps(patch.setattr)
        return covey.PrivateSynthesizer(2.0, 1e-6, schema=visits[1]).fit(visits[0])


@pytest.fixture(scope="module")
def released(fitted):
    return fitted.release(400)


@pytest.fixture(scope="module")
def averaged(visits):
    return covey.AnonymousSynthesizer(20, schema=visits[1]).fit(visits[0])


@pytest.fixture
def folder(released, tmp_path):
    return write_bundle(released, tmp_path / "bundle")


@pytest.fixture(scope="module")
def bundles(released, averaged, tmp_path_factory):
    """A folder with a private and an anonymous bundle, which tests leave as they are."""
    folder = tmp_path_factory.mktemp("bundles")
    write_bundle(released, folder / "private")
    write_bundle(averaged.release(50), folder / "anonymous")
    return folder
