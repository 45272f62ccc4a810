"""A small clinic that tests of several rooms share: patients and their visits, as columns of text, as files, as a package."""

import copy
import json

import numpy as np

from covey.tables.description import Description
from tests.entries import entry

KEY = {"fields": "who", "reference": {"resource": "patients", "fields": "id"}}
DAY = entry("day", "integer", 0, 365, required=True, default=0)
VISITS = [{"name": "who", "type": "string"}, DAY, entry("ward", "string", enum=["a", "b"])]
PATIENTS = [{"name": "id", "type": "string"}, entry("age", "integer", 0, 99)]
GOOD = {
    "title": "A clinic",
    "resources": [
        {"name": "patients", "path": "patients.csv", "schema": {"primaryKey": "id", "fields": PATIENTS}},
        {
            "name": "visits",
            "path": "visits.csv",
            "covey": {"at_most": 9, "order": "day"},
            "schema": {"foreignKeys": [KEY], "fields": VISITS},
        },
    ],
}


def changed(change):
    """The description of the clinic, changed by a function of its two tables."""
    data = copy.deepcopy(GOOD)
    change(data["resources"][0], data["resources"][1])
    return data


def described(change):
    """The package, changed."""
    return Description.from_dict(changed(change))


def with_drugs(beside_visits=True):
    """The clinic with a third table: drugs of patients beside their visits, or drugs of visits."""
    data = copy.deepcopy(GOOD)
    to = {"resource": "patients", "fields": "id"} if beside_visits else {"resource": "visits", "fields": "visit"}
    data["resources"][1]["schema"]["primaryKey"] = "visit"
    data["resources"][1]["schema"]["fields"].append({"name": "visit", "type": "string"})
    fields = [{"name": "of", "type": "string"}, entry("dose", "integer", 0, 9)]
    schema = {"fields": fields, "foreignKeys": [{"fields": "of", "reference": to}]}
    data["resources"].append({"name": "drugs", "path": "drugs.csv", "covey": {"at_most": 2}, "schema": schema})
    return data


PACKAGE = Description.from_dict(GOOD)


def clinic(n=300, seed=0):
    """Patients and their visits as columns of text, visits in no order."""
    g = np.random.default_rng(seed)
    who = g.permutation(np.repeat(np.arange(n), g.integers(0, 5, n)))
    patients = {"age": [str(a) for a in g.integers(0, 99, n)], "id": [f"p{i}" for i in range(n)]}
    visits = {"day": [str(d) for d in g.integers(0, 365, len(who))], "who": [f"p{i}" for i in who]}
    return {"patients": patients, "visits": {**visits, "ward": [str(w) for w in g.choice(["a", "b"], len(who))]}}


def as_csv(columns):
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    return ("\n".join(lines) + "\n").encode()


def write(folder, tables):
    """The clinic as files; where its package is."""
    for name, columns in tables.items():
        (folder / f"{name}.csv").write_bytes(as_csv(columns))
    (folder / "package.json").write_text(json.dumps(GOOD))
    return folder / "package.json"


def ruled(change=lambda data: None):
    """Nobody under 50 lies in ward b."""
    data = copy.deepcopy(GOOD)
    data["covey"] = {"rules": [{"forbid": {"patients.age": {"maximum": 49}, "visits.ward": "b"}}]}
    change(data)
    return data
