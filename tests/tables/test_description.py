"""Packages of persons and events: read, written, confirmed, refused."""

import copy
import json

import pytest

from covey.errors import ParameterError
from covey.tables.description import Description, is_package
from covey.tables.reading import Reader
from tests.clinic import GOOD, changed
from tests.entries import entry


def test_a_package_is_read_and_written_as_it_was():
    package = Description.from_dict(GOOD)
    assert package.unit.link == "id"
    assert package.events.link == "who"
    assert package.unit.schema.names == ("age",)
    assert package.events.written.names == ("day", "ward")
    assert (package.link.at_most, package.link.order, package.link.numbered) == (9, "day", False)
    assert Description.from_dict(package.to_dict()) == package
    assert package.to_dict()["title"] == "A clinic"
    turned = {**GOOD, "resources": GOOD["resources"][::-1]}
    assert Description.from_dict(turned) == package
    # An order that counts events is not synthesized, and an event's own key is left out.
    numbered = Description.from_dict(changed(lambda _, v: v["covey"].update(numbered=True)))
    assert numbered.events.written.names == ("ward",)
    assert Description.from_dict(numbered.to_dict()) == numbered
    own = changed(lambda _, v: v["schema"].update(primaryKey="visit"))
    own["resources"][1]["schema"]["fields"].append({"name": "visit", "type": "integer"})
    assert Description.from_dict(own).events.schema.names == ("day", "ward")


def test_a_package_on_disk_is_told_from_a_schema(tmp_path):
    (tmp_path / "package.json").write_text(json.dumps(GOOD))
    (tmp_path / "schema.json").write_text(json.dumps({"fields": []}))
    assert is_package(tmp_path / "package.json")
    assert not is_package(tmp_path / "schema.json")
    with pytest.raises(ParameterError, match=r"there is no file .*none\.json"):
        is_package(tmp_path / "none.json")
    assert not is_package(tmp_path / "table.csv")
    Description.load(tmp_path / "package.json").save(tmp_path / "again.json")
    assert Description.load(tmp_path / "again.json") == Description.from_dict(GOOD)


def test_fields_are_confirmed_by_table_and_name():
    def draft(patients, visits):
        for part in (patients, visits):
            part["schema"]["covey"] = {"draft": "draft: describes private data"}

    package = Description.from_dict(changed(draft))
    assert package.drafted
    with pytest.raises(
        ParameterError, match=r"not confirmed as public for 'patients.age', 'visits.day', 'visits.ward'"
    ):
        package.require_confirmed()
    some = package.confirm(["patients.age", "visits.ward"])
    with pytest.raises(ParameterError, match=r"for 'visits.day'"):
        some.require_confirmed()
    assert not some.confirm().drafted
    assert package.confirm(["ward"]) == package.confirm(["visits.ward"])
    with pytest.raises(ParameterError, match="no field 'hour'"):
        package.confirm(["hour"])


def test_one_table_is_a_package_of_one_resource():
    """Its schema file, its resource, and a package with it alone say the same."""
    own = GOOD["resources"][0]["schema"]
    schema = {"fields": own["fields"][1:]}
    plain, named = Description.from_dict(schema), Description.from_dict({"resources": [{**GOOD["resources"][0]}]})
    assert plain.schema == named.schema
    assert plain.to_dict()["fields"] == schema["fields"]
    assert (plain.unit.name, named.unit.name, named.unit.path) == ("synthetic", "patients", "patients.csv")
    assert Description.from_dict(named.to_dict()) == named
    assert [name for name, _ in named.fields] == ["age"]
    assert named.find("age") == named.find("patients.age")


def test_tables_form_a_tree_of_any_depth():
    """Visits of patients, drugs of visits, and a second branch; the reader that serves two tables refuses more."""

    def branch(name, to, key="visit"):
        link = [{"fields": "of", "reference": {"resource": to, "fields": key}}]
        fields = [{"name": "of", "type": "string"}, entry("ward", "string", enum=["x", "y"])]
        return {"name": name, "covey": {"at_most": 2}, "schema": {"fields": fields, "foreignKeys": link}}

    data = copy.deepcopy(GOOD)
    data["resources"][1]["schema"]["primaryKey"] = "visit"
    data["resources"][1]["schema"]["fields"].append({"name": "visit", "type": "string"})
    data["resources"] = [branch("drugs", "visits"), *data["resources"], branch("letters", "patients", "id")]
    tree = Description.from_dict(data)
    assert [part.name for part in tree.tables] == ["patients", "visits", "letters", "drugs"]
    assert [part.parent and part.parent.table for part in tree.tables] == [None, "patients", "patients", "visits"]
    assert Description.from_dict(tree.to_dict()) == tree
    assert [part.key for part in tree.plain().tables] == ["id", "visit", None, None]
    assert tree.find("drugs.ward")[0].name == "drugs"
    with pytest.raises(
        ParameterError, match=r"several tables have a field 'ward': write visits.ward, letters.ward, drugs"
    ):
        tree.find("ward")
    with pytest.raises(ParameterError, match="several event tables are not supported yet"):
        Reader(tree).prepare({})
    data["resources"][0]["schema"]["foreignKeys"] = branch("", "nowhere")["schema"]["foreignKeys"]
    with pytest.raises(ParameterError, match="must refer to resource"):
        Description.from_dict(data)


def third(data):
    return {**data, "resources": [*data["resources"], {"name": "drugs", "schema": {"fields": []}}]}


def reference(visits):
    return visits["schema"]["foreignKeys"][0]["reference"]


def learned(_, visits):
    visits["schema"]["fields"][1].update(constraints={"required": True}, covey={"learn": True})
    visits["covey"].update(numbered=True)


def counted(change):
    """Visits that are counted, changed by a function of theirs."""
    return lambda _, visits: (visits["covey"].update(numbered=True), change(visits))


def one_name(_, visits):
    visits.update(name="patients")
    reference(visits).update(resource="patients")


COUNT_RULE = {"rules": [{"forbid": {"day": {"minimum": 3}, "ward": "a"}}]}
KEY_RULE = {"rules": [{"forbid": {"who": "x", "ward": "a"}}]}
ACROSS = {"rules": [{"forbid": {"patients.age": {"maximum": 9}, "visits.dose": {"minimum": 50}}}]}


def across(**own):
    """A rule on the age of a patient and the dose at a visit, of which more is said."""
    return {
        **changed(lambda _, v: v["schema"]["fields"].append(entry("dose", "integer", 0, 99, **own))),
        "covey": ACROSS,
    }


def with_words(data):
    data["resources"][1]["schema"]["missingValues"] = ["", "50"]
    return data


WRONG = {
    "a rule across, of an expected field": (across(expected={"expression": "day * 2"}), "stands in another rule"),
    "a rule across, of a number that means missing": (with_words(across()), "mean missing or special"),
    "no resources": ({"resources": {}}, 'a list "resources"'),
    "two units": (third(GOOD), "'patients', 'drugs' refer to no table"),
    "no foreign key": (changed(lambda p, v: v["schema"].pop("foreignKeys")), "no resource has foreignKeys"),
    "a circle": (
        changed(lambda p, v: p["schema"].update(foreignKeys=v["schema"]["foreignKeys"])),
        "refers to the other, in a circle",
    ),
    "no primary key": (changed(lambda p, v: p["schema"].pop("primaryKey")), "needs a primaryKey"),
    "another key": (changed(lambda p, v: p["schema"].update(primaryKey="age")), "not the primaryKey"),
    "two columns": (changed(lambda p, v: p["schema"].update(primaryKey=["id", "age"])), "must be one column"),
    "another table": (
        changed(lambda p, v: reference(v).update(resource="people")),
        "must refer to resource 'patients'",
    ),
    "no limit": (changed(lambda p, v: v["covey"].pop("at_most")), "how many events a person has at most"),
    "a high limit": (changed(lambda p, v: v["covey"].update(at_most=51)), "50 at most, got 51"),
    "limit 0": (changed(lambda p, v: v["covey"].update(at_most=0)), "at_most"),
    "order of persons": (changed(lambda p, v: p.update(covey={"at_most": 3})), "belong to the resource of the events"),
    "order of the package": ({**GOOD, "covey": {"order": "day"}}, "not to the whole package"),
    "an unknown word": (changed(lambda p, v: v["covey"].update(atmost=3)), "'atmost', which covey does not know"),
    "order that is a label": (changed(lambda p, v: v["covey"].update(order="ward")), "no number, date or time"),
    "order that is no field": (changed(lambda p, v: v["covey"].update(order="hour")), "no field 'hour'"),
    "order with holes": (
        changed(lambda p, v: v["schema"]["fields"][1]["constraints"].pop("required")),
        "orders events and may be missing",
    ),
    "nothing but keys": (
        changed(lambda p, v: v["schema"].update(fields=v["schema"]["fields"][:1])),
        "no column besides its keys",
    ),
    "learned": (changed(learned), "numbers events and is to be learned"),
    "a count alone": (
        changed(counted(lambda v: v["schema"]["fields"].pop())),
        "no column besides 'day', which numbers",
    ),
    "a rule on a count": (
        changed(counted(lambda v: v["schema"].update(covey=COUNT_RULE))),
        "a rule on 'day', which numbers",
    ),
    "important": (changed(lambda p, v: v["schema"].update(covey={"important": ["ward"]})), "names what matters most"),
    "one name": (changed(one_name), "two resources are named"),
    "a name that is a path": (changed(lambda p, v: v.update(name="../visits")), "of letters, digits, _ and -"),
    "a key in a rule": (changed(lambda p, v: v["schema"].update(covey=KEY_RULE)), "who"),
}


def test_a_rule_across_tables_on_a_field_by_itself_is_read():
    assert len(Description.from_dict(across()).rules) == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_package_that_says_too_little_or_something_else_is_refused(name):
    data, words = WRONG[name]
    with pytest.raises(ParameterError, match=words):
        Description.from_dict(data)
