"""Levels of categories: by first letters, by a derived field; refusals; releases that keep groups."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.schema import Schema

CODES = [f"{chapter}{i:02d}" for chapter in "ABCDEFGH" for i in range(40)]
CODE = {"name": "code", "type": "string", "constraints": {"enum": CODES}, "covey": {"levels": 1}}
KIND = {
    "name": "chapter",
    "type": "string",
    "covey": {"derived": {"from": "code", "map": {code: code[0] for code in CODES[:-1]}}},
}
SEX = {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}}


def test_groups_are_first_letters_or_a_derived_field():
    groups = Codec(Schema.from_dict({"fields": [CODE, SEX]})).groups("code")
    assert groups == (*np.repeat(np.arange(8), 40).tolist(), 8)  # missing by itself
    by_field = {**CODE, "covey": {"levels": "chapter"}}
    derived = Codec(Schema.from_dict({"fields": [by_field, KIND, SEX]})).groups("code")
    assert derived[:319] == groups[:319]
    assert (
        len({*derived[:319], derived[319], derived[320]}) == 10
    )  # what the list leaves out, and missing, by themselves
    assert Schema.from_dict({"fields": [{**CODE, "covey": {"levels": "icd10"}}]})["code"].levels == 3
    assert Codec(Schema.from_dict({"fields": [SEX, CODE]})).groups("sex") == ()


@pytest.mark.parametrize(
    "fields",
    [
        [{**CODE, "covey": {"levels": 0}}],
        [{**CODE, "covey": {"levels": True}}],
        [{**CODE, "covey": {"levels": [1, 3]}}],
        [{**CODE, "covey": {"levels": 1, "ordered": True}}],
        [{**CODE, "covey": {"levels": "sex"}}, SEX],
        [{**CODE, "covey": {"levels": "chapters"}}, KIND],
        [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "covey": {"levels": 1}}],
    ],
)
def test_levels_that_make_no_sense_are_refused(fields):
    with pytest.raises(ParameterError):
        Schema.from_dict({"fields": fields})


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_groups_of_many_codes_come_out_closer_with_levels():
    generator = np.random.default_rng(2)
    share = np.repeat(generator.dirichlet(np.full(8, 1.0)), 40) * generator.dirichlet(np.full(40, 0.3), 8).ravel()
    code = generator.choice(320, 4000, p=share)
    sex = np.where(generator.random(4000) < 0.3 + 0.05 * (code // 40), "f", "m")
    table = pl.DataFrame({"code": np.array(CODES)[code], "sex": sex})
    true = np.bincount(code // 40, minlength=8) / 4000

    def error(field, seed):
        schema = Schema.from_dict({"fields": [field, SEX]})
        rows = covey.PrivateSynthesizer(0.3, 1e-9, schema=schema, seed=seed).fit(table).sample(4000)
        first = rows["code"].drop_nulls().str.slice(0, 1).to_list()
        found = np.array([first.count(letter) for letter in "ABCDEFGH"]) / 4000
        return np.abs(found - true).sum() / 2

    flat = {**CODE, "covey": {}}
    plain, grouped = (np.mean([error(field, seed) for seed in range(2)]) for field in (flat, CODE))
    assert grouped < 0.75 * plain
