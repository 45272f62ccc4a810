"""The survey excerpt national2019 as its public code book describes it: categories, bounds, and what no person can be.

Everything here is in the code book (national2019-dictionary.json) or follows from its words: "N/A (less than 15 years old)" says
that a child has no income, "Group quarters" that such a room is not owned. Two columns are public functions of others: an
area has one density, an industry one group. These two lists, and the areas of this excerpt, are taken from the table itself for
want of the published ones; they hold facts about areas and industries, not about persons.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from covey.tables.schema import Schema

# The columns of the cycle's feature sets, as its published reports list them.
FEATURES = {
    "demographic": ["AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE"],
    "family": ["PUMA", "AGEP", "SEX", "MSP", "HISP", "RAC1P", "NOC", "NPF", "OWN_RENT", "PINCP_DECILE", "POVPIP"],
    "industry": ["PUMA", "SEX", "MSP", "HISP", "RAC1P", "OWN_RENT", "INDP_CAT", "EDU", "PINCP_DECILE"],
    "all": [
        "PUMA",
        "AGEP",
        "SEX",
        "MSP",
        "HISP",
        "RAC1P",
        "NOC",
        "NPF",
        "HOUSING_TYPE",
        "OWN_RENT",
        "DENSITY",
        "INDP",
        "INDP_CAT",
        "EDU",
        "PINCP",
        "PINCP_DECILE",
        "POVPIP",
        "DVET",
        "DREM",
        "DPHY",
        "DEYE",
        "DEAR",
        "PWGTP",
        "WGTP",
    ],
}


class AreasFirst(list):
    """Columns of which those together with the area matter most: SDNist looks at each area by itself, which is public."""


FEATURES |= {f"{name}, areas first": AreasFirst(FEATURES[name]) for name in ("family", "industry", "all")}

# Numbers: smallest, largest, decimals, and whether "N" stands among them.
NUMBERS = {
    "AGEP": (0, 99, 0, False),
    "NOC": (0, 19, 0, True),
    "NPF": (2, 20, 0, True),
    "PINCP": (-9000, 1_341_000, 0, True),
    "POVPIP": (0, 501, 0, True),
    "PWGTP": (1, 9999, 0, False),
    "WGTP": (0, 9999, 0, False),
}
DERIVED = {"DENSITY": "PUMA", "INDP_CAT": "INDP"}


def rows(data: Path) -> dict[str, tuple[str, ...]]:
    """The table's columns, as texts."""
    with (data / "national2019.csv").open(newline="") as file:
        reader = csv.reader(file)
        names = next(reader)
        return dict(zip(names, zip(*reader, strict=True), strict=True))


def survey_schema(data: Path, features: list[str], ruled: bool = True) -> Schema:
    """The schema of some columns; `ruled=False` leaves out what the code book knows to be impossible."""
    facts, table = json.loads((data / "national2019-dictionary.json").read_text()), rows(data)
    fields = [_field(name, features, facts, table) for name in features]
    measured = {name for name in features if DERIVED.get(name) not in features}
    rules = [rule for rule in _rules() if _columns(rule) <= measured] if ruled else []
    schema = Schema.from_dict({"fields": fields, "covey": {"rules": rules}})
    others = [name for name in features if name in measured and name != "PUMA"]
    return schema.focus(*(("PUMA", name) for name in others)) if isinstance(features, AreasFirst) else schema


def _field(name, features, facts, table):
    if name in NUMBERS:
        low, high, decimals, special = NUMBERS[name]
        own = {"decimals": decimals} if decimals else {}
        own |= {"special": ["N"]} if special else {}
        limits = {"minimum": low, "maximum": high, "required": True}
        return {"name": name, "type": "integer", "constraints": limits, "covey": own}
    source = DERIVED.get(name)
    if source in features:
        return _derived(name, source, table)
    labels = [*facts[name].get("values", {})] or sorted(set(table[name]))
    if name == "PUMA":  # the code book also lists the areas of the other excerpts, and SDNist fails on them
        labels = sorted(set(table[name]))
    ordered = {"ordered": True} if name in ("EDU", "PINCP_DECILE") else {}
    if name == "PINCP_DECILE":
        labels = ["N", *map(str, range(10))]
    if name == "INDP" and "INDP_CAT" in features:
        ordered = {"levels": "INDP_CAT"}
    return {"name": name, "type": "string", "constraints": {"enum": labels, "required": True}, "covey": ordered}


def _derived(name, source, table):
    pairs = dict(sorted(set(zip(table[source], table[name], strict=True))))
    if name == "DENSITY":
        pairs = {area: float(density) for area, density in pairs.items()}
        limits = {"minimum": 0, "maximum": 60_000}
        own = {"decimals": 1, "derived": {"from": [source], "map": pairs}}
        return {"name": name, "type": "number", "constraints": limits, "covey": own}
    limits = {"enum": sorted(set(pairs.values()))}
    return {
        "name": name,
        "type": "string",
        "constraints": limits,
        "covey": {"derived": {"from": [source], "map": pairs}},
    }


def _rules():
    """What the code book rules out."""
    child, adult = {"AGEP": {"maximum": 14}}, {"AGEP": {"minimum": 15}}
    rules = []
    for name in ("MSP", "PINCP", "PINCP_DECILE"):  # N/A (less than 15 years old)
        rules += [{"requires": {"if": child, "then": {name: "N"}}}, {"forbid": {**adult, name: "N"}}]
    for name in ("INDP", "INDP_CAT"):  # N/A (less than 16 years old, …)
        rules.append({"requires": {"if": {"AGEP": {"maximum": 15}}, "then": {name: "N"}}})
    rules.append({"requires": {"if": {"AGEP": {"maximum": 16}}, "then": {"DVET": "N"}}})
    for name in ("DREM", "DPHY"):  # N/A (less than 5 years old)
        rules.append({"requires": {"if": {"AGEP": {"maximum": 4}}, "then": {name: "N"}}})
        rules.append({"forbid": {"AGEP": {"minimum": 5}, name: "N"}})
    rules += [  # schooling: none below 3, no diploma below 5, no doctorate below 15
        {"requires": {"if": {"AGEP": {"maximum": 2}}, "then": {"EDU": "N"}}},
        {"forbid": {"AGEP": {"minimum": 3}, "EDU": "N"}},
        {"forbid": {"AGEP": {"maximum": 4}, "EDU": [str(k) for k in range(5, 13)]}},
        {"forbid": {"AGEP": {"maximum": 14}, "EDU": "12"}},
    ]
    quarters = {"HOUSING_TYPE": ["2", "3"]}
    rules += [
        {"requires": {"if": quarters, "then": {"OWN_RENT": "0"}}},
        {"forbid": {"HOUSING_TYPE": "1", "OWN_RENT": "0"}},
        {"requires": {"if": quarters, "then": {"NOC": "N"}}},
        {"forbid": {"HOUSING_TYPE": "1", "NOC": "N"}},
        {"requires": {"if": quarters, "then": {"NPF": "N"}}},
        {"requires": {"if": quarters, "then": {"WGTP": 0}}},
        {"forbid": {"HOUSING_TYPE": "1", "WGTP": 0}},
        {"requires": {"if": {"OWN_RENT": "0"}, "then": {"NOC": "N"}}},
        {"requires": {"if": {"OWN_RENT": "0"}, "then": {"NPF": "N"}}},
        {"linear": {"coefficients": {"NOC": 1, "NPF": -1}, "maximum": -1}},
    ]
    # Where age is not there, the columns that say "child" must agree.
    rules += [{"requires": {"if": {"MSP": "N"}, "then": {"PINCP_DECILE": "N"}}}]
    rules += [{"requires": {"if": {"PINCP_DECILE": "N"}, "then": {"MSP": "N"}}}]
    rules += [{"requires": {"if": {"MSP": "N"}, "then": {"INDP_CAT": "N"}}}]
    return rules


def _columns(rule):
    """The columns that a rule names."""
    ((_, words),) = rule.items()
    if "if" in words:
        return {*words["if"], *words["then"]}
    return set(words.get("coefficients", words))
