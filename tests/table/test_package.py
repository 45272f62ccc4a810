"""Packages of persons and events: read, written, confirmed, refused."""

import copy
import json

import pytest

from covey.errors import ParameterError
from covey.table.package import Package, is_package

GOOD = {
    "title": "A clinic",
    "resources": [
        {
            "name": "patients",
            "path": "patients.csv",
            "schema": {
                "primaryKey": "id",
                "fields": [
                    {"name": "id", "type": "string"},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
                ],
            },
        },
        {
            "name": "visits",
            "path": "visits.csv",
            "covey": {"at_most": 9, "order": "day"},
            "schema": {
                "foreignKeys": [{"fields": "who", "reference": {"resource": "patients", "fields": "id"}}],
                "fields": [
                    {"name": "who", "type": "string"},
                    {
                        "name": "day",
                        "type": "integer",
                        "constraints": {"minimum": 0, "maximum": 365, "required": True},
                        "covey": {"default": 0},
                    },
                    {"name": "ward", "type": "string", "constraints": {"enum": ["a", "b"]}},
                ],
            },
        },
    ],
}


def changed(change):
    data = copy.deepcopy(GOOD)
    change(data["resources"][0], data["resources"][1])
    return data


def test_a_package_is_read_and_written_as_it_was():
    package = Package.from_dict(GOOD)
    assert package.persons.key == "id"
    assert package.events.key == "who"
    assert package.persons.schema.names == ("age",)
    assert package.event_schema.names == ("day", "ward")
    assert (package.at_most, package.order, package.numbered) == (9, "day", False)
    assert Package.from_dict(package.to_dict()) == package
    assert package.to_dict()["title"] == "A clinic"
    turned = {**GOOD, "resources": GOOD["resources"][::-1]}
    assert Package.from_dict(turned) == package


def test_an_order_that_counts_events_is_not_synthesized():
    package = Package.from_dict(changed(lambda _, v: v["covey"].update(numbered=True)))
    assert package.event_schema.names == ("ward",)
    assert Package.from_dict(package.to_dict()) == package


def test_an_events_own_key_is_left_out():
    def own(_, visits):
        visits["schema"]["primaryKey"] = "visit"
        visits["schema"]["fields"].append({"name": "visit", "type": "integer"})

    assert Package.from_dict(changed(own)).events.schema.names == ("day", "ward")


def test_a_package_on_disk_is_told_from_a_schema(tmp_path):
    (tmp_path / "package.json").write_text(json.dumps(GOOD))
    (tmp_path / "schema.json").write_text(json.dumps({"fields": []}))
    assert is_package(tmp_path / "package.json")
    assert not is_package(tmp_path / "schema.json")
    assert not is_package(tmp_path / "none.json")
    assert not is_package(tmp_path / "table.csv")
    Package.load(tmp_path / "package.json").save(tmp_path / "again.json")
    assert Package.load(tmp_path / "again.json") == Package.from_dict(GOOD)


def test_fields_are_confirmed_by_table_and_name():
    def draft(patients, visits):
        for part in (patients, visits):
            part["schema"]["covey"] = {"draft": "draft: describes private data"}

    package = Package.from_dict(changed(draft))
    assert package.drafted
    with pytest.raises(
        ParameterError, match=r"not confirmed as public for 'patients.age', 'visits.day', 'visits.ward'"
    ):
        package.require_confirmed()
    some = package.confirm(["patients.age", "visits.ward"])
    with pytest.raises(ParameterError, match=r"for 'visits.day'"):
        some.require_confirmed()
    assert not some.confirm().drafted
    with pytest.raises(ParameterError, match="no field 'ward'"):
        package.confirm(["ward"])


def third(data):
    return {**data, "resources": [*data["resources"], {"name": "drugs", "schema": {"fields": []}}]}


WRONG = {
    "no resources": ({"fields": []}, 'a list "resources"'),
    "one resource": ({"resources": GOOD["resources"][:1]}, "whose its rows are"),
    "two event tables": (third(GOOD), "Several event tables are not supported yet"),
    "no foreign key": (changed(lambda p, v: v["schema"].pop("foreignKeys")), "no resource has foreignKeys"),
    "a circle": (
        changed(lambda p, v: p["schema"].update(foreignKeys=v["schema"]["foreignKeys"])),
        "refers to the other, in a circle",
    ),
    "no primary key": (changed(lambda p, v: p["schema"].pop("primaryKey")), "needs a primaryKey"),
    "another key": (changed(lambda p, v: p["schema"].update(primaryKey="age")), "not the primaryKey"),
    "two columns": (changed(lambda p, v: p["schema"].update(primaryKey=["id", "age"])), "must be one column"),
    "another table": (
        changed(lambda p, v: v["schema"]["foreignKeys"][0]["reference"].update(resource="people")),
        "must refer to resource 'patients'",
    ),
    "no limit": (changed(lambda p, v: v["covey"].pop("at_most")), "how many a person has at_most"),
    "a high limit": (changed(lambda p, v: v["covey"].update(at_most=51)), "50 at most, got 51"),
    "limit 0": (changed(lambda p, v: v["covey"].update(at_most=0)), "at_most"),
    "order of persons": (changed(lambda p, v: p.update(covey={"at_most": 3})), "belong to the resource of the events"),
    "order of the package": ({**GOOD, "covey": {"order": "day"}}, "not to the whole package"),
    "an unknown word": (changed(lambda p, v: v["covey"].update(atmost=3)), "'atmost', which covey does not know"),
    "order that is a label": (changed(lambda p, v: v["covey"].update(order="ward")), "no number, date or time"),
    "order that is no field": (changed(lambda p, v: v["covey"].update(order="hour")), "no field 'hour'"),
    "order with holes": (
        changed(lambda p, v: v["schema"]["fields"][1].update(constraints={"minimum": 0, "maximum": 9})),
        "orders events and may be missing",
    ),
    "nothing but keys": (
        changed(lambda p, v: v["schema"].update(fields=v["schema"]["fields"][:1])),
        "no column besides its keys",
    ),
    "learned": (
        changed(lambda p, v: p["schema"]["fields"][1].update(constraints={}, covey={"learn": True})),
        "are to be learned",
    ),
    "important": (changed(lambda p, v: v["schema"].update(covey={"important": ["ward"]})), "important columns"),
    "one name": (
        changed(
            lambda p, v: (
                v.update(name="patients"),
                v["schema"]["foreignKeys"][0]["reference"].update(resource="patients"),
            )
        ),
        "two resources are named",
    ),
    "a name that is a path": (changed(lambda p, v: v.update(name="../visits")), "of letters, digits, _ and -"),
    "a key in a rule": (
        changed(
            lambda p, v: v["schema"].update(covey={"rules": [{"forbid": {"who": "x", "ward": "a"}}]}),
        ),
        "who",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_package_that_says_too_little_or_something_else_is_refused(name):
    data, words = WRONG[name]
    with pytest.raises(ParameterError, match=words):
        Package.from_dict(data)
