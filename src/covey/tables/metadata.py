"""Schemas that come from elsewhere: imported from SmartNoise YAML and SDV JSON metadata.

An import is public metadata; a field is left unconfirmed where that metadata lacks what covey needs (bounds of a number,
categories of a text).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.errors import ParameterError
from covey.tables.document import read_document
from covey.tables.fields import Field
from covey.tables.schema import Schema


def imported(path: Path) -> Schema:
    """The schema that SDV's JSON or SmartNoise's YAML metadata declares."""
    return from_sdv_json(path) if path.suffix == ".json" else from_smartnoise_yaml(path)


def from_smartnoise_yaml(path: str | Path) -> Schema:
    """Import the metadata of one table from a SmartNoise YAML file: collection, schema, table, columns."""
    found: dict[str, Mapping[str, Any]] = {}

    def collect(node: Any, depth: int, name: str) -> None:
        if not isinstance(node, Mapping):
            return
        columns = {k: v for k, v in node.items() if isinstance(v, Mapping) and "type" in v}
        if columns:
            found[name] = columns
        elif depth < 4:
            for key, part in node.items():
                collect(part, depth + 1, str(key))

    if Path(path).suffix.lower() not in (".yaml", ".yml"):
        raise ParameterError(f"{path} must be a YAML file: its name should end in .yaml or .yml.")
    collect(read_document(path), 0, "")
    columns = _one_table(found, path)
    kept = {name: spec for name, spec in columns.items() if not spec.get("private_id")}
    return Schema(tuple(_smartnoise_field(str(name), spec) for name, spec in kept.items()))


def _smartnoise_field(name: str, spec: Mapping[str, Any]) -> Field:
    types = {"int": "integer", "integer": "integer", "float": "number", "boolean": "boolean", "string": "string"}
    type_ = types.get(str(spec["type"]).lower(), "datetime" if "date" in str(spec["type"]).lower() else "")
    if not type_:
        raise ParameterError(f"column {name!r} has SmartNoise type {spec['type']!r}, which covey does not know.")
    required = spec.get("nullable") is False
    low, high = (spec.get("lower"), spec.get("upper")) if type_ in ("integer", "number") else (None, None)
    known = type_ == "boolean" or (low is not None and high is not None)
    return Field(name, type_, low, high, required=required, confirmed=known)


def from_sdv_json(path: str | Path) -> Schema:
    """Import one table of SDV metadata. It names types, not bounds or categories, so most fields wait for both."""
    data = read_document(path)
    if not isinstance(data, Mapping):
        raise ParameterError(f"{path} is not SDV metadata: it must be an object.")
    tables = data.get("tables") if isinstance(data.get("tables"), Mapping) else {"table": data}
    found = {
        str(name): part["columns"]
        for name, part in (tables or {}).items()
        if isinstance(part, Mapping) and isinstance(part.get("columns"), Mapping)
    }
    columns = _one_table(found, path)
    fields = [_sdv_field(str(name), spec) for name, spec in columns.items() if spec.get("sdtype") != "id"]
    return Schema(tuple(fields))


def _sdv_field(name: str, spec: Mapping[str, Any]) -> Field:
    type_ = str(spec.get("sdtype", "")).lower()
    if type_ == "boolean":
        return Field(name, "boolean")
    if type_ == "numerical":
        whole = "int" in str(spec.get("computer_representation", "")).lower()
        return Field(name, "integer" if whole else "number", confirmed=False)
    if type_ == "datetime":
        clock = re.search("%[HIMSTXc]", str(spec.get("datetime_format", "%H")))
        return Field(name, "datetime" if clock else "date", confirmed=False)
    # Everything else (categorical, and names, addresses, … as SDV knows them) is text whose categories are not listed.
    listed = spec.get("order")
    enum = tuple(map(str, listed)) if isinstance(listed, list) and listed else None
    ordered = bool(listed or spec.get("order_by"))
    return Field(name, "string", enum=enum, ordered=ordered, confirmed=enum is not None)


def _one_table(found: Mapping[str, Any], path: str | Path) -> Any:
    if len(found) != 1:
        names = ", ".join(map(repr, found)) or "none"
        raise ParameterError(f"{path} describes the tables {names}. Leave one in it: covey imports one at a time.")
    return next(iter(found.values()))
