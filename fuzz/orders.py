"""A case for every seed: which kind of table, how it is described, and how its release is ordered."""

from __future__ import annotations

import csv
import io
from typing import Any

from fuzz.cases import (
    NUMBERS,
    ORDERED,
    Case,
    Chance,
    draw_condition,
    draw_field,
    draw_fields,
    draw_names,
    draw_rules,
    draw_table,
    expect,
    write,
)
from fuzz.names import EMPTY, written

KINDS = ("table", "table", "table", "table", "drafted", "learned", "person", "package", "package", "alone")
OPTIONS = (
    *("delta", "pure", "triples", "target", "important", "prior", "rows", "rows-per-person", "parquet", "learn"),
    *("person", "large", "misfits", "learn-relations", "neighbours", "gaussian ledger"),
)
RELATED = 1 << 40  # beyond all seeds: a stream of its own, so that the others draw what they drew before
TIES = ("after", "difference_from", "derived", "levels", "constant", "special", "bins", "other", "ordered", "learn")
EXPECTED = ("expected",)  # of later seeds
LINKS = ("order", "numbered", "positions", "gaps", "rules across", "triples", "target", "important", "prior")
LATER = 96_000  # from this seed on more is drawn: earlier ones are what finds are named by, and stay as they were
ANY_NAME = 1_000_000  # from this seed on columns have any name


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    chance = Chance(seed)
    chance.any_name = seed >= ANY_NAME
    kind = chance.choice(KINDS)
    rows = chance.choice([20, 25, 35, 60, 120, 300])
    if kind in ("package", "alone"):
        return _linked(chance, seed, kind, rows)
    (link,) = draw_names(chance, 1) if chance.any_name else ["whose"]
    fields = draw_fields(chance, chance.randint(1, 5), (link,))
    later = Chance(seed + 2 * RELATED) if seed >= LATER else None
    if later is not None:
        later.any_name = chance.any_name
    if later is not None and later.once_in(3):
        expect(later, fields)
    for entry in fields if kind == "learned" and chance.once_in(2) else ():
        if not entry.get("covey") and chance.once_in(2) and not (chance.any_name and entry["name"] in _bases(fields)):
            entry["covey"] = {"learn": True}
    more = {link: [f"p{chance.randrange(max(5, rows // 2))}" for _ in range(rows)]} if kind == "person" else {}
    more |= _nameless(chance, rows)
    table = draw_table(chance, fields, rows, more)
    for entry in fields:
        if entry.get("covey", {}).get("learn"):
            entry.pop("constraints", None)
    document: dict[str, Any] = {"fields": fields, "missingValues": ["", *(["?"] if chance.once_in(4) else [])]}
    rules = draw_rules(chance, fields)
    if rules:
        document["covey"] = {"rules": rules}
    words = _budget(chance) + _focus(chance, fields) + _size(chance)
    if kind == "person":
        words += ["--person", link]
    elif chance.once_in(8):
        words += ["--rows-per-person", "2"]
    learned = any(entry.get("covey", {}).get("learn") for entry in fields)
    if kind == "learned" and not learned:
        words += ["--learn"]
    if later is not None:
        words += _later(later)
    looked = kind in ("table", "person") and not learned
    if (looked or (chance.any_name and kind == "learned")) and Chance(seed + RELATED).once_in(5):
        # With so few rows relations are looked for at a budget that nobody should spend.
        words = ["--learn-relations", "--confirm-large-epsilon", *words]
        words[words.index("--epsilon") + 1] = "60"
    drawn = kind in ("table", "person") or learned
    case = Case(seed, kind, {"table.csv": table}, document if drawn else None, words, link=link)
    if drawn:
        case.files["schema.json"] = write(document)
        if chance.once_in(8) and not learned and not (chance.any_name and "--learn-relations" in words):
            case.named.add("prior")  # the journey makes one
    _name(case)
    return case


def _budget(chance: Chance) -> list[str]:
    epsilon = chance.choice(["0.01", "0.3", "1", "1", "4", "10", "60"])
    words = ["--epsilon", epsilon, "--delta", chance.choice(["0", "1e-9", "1e-6"])]
    return words + (["--confirm-large-epsilon"] if epsilon == "60" and not chance.once_in(9) else [])


def _focus(chance: Chance, fields: list[dict[str, Any]]) -> list[str]:
    names = [
        f["name"] for f in fields if not {"derived", "constant"} & set(f.get("covey", {})) and "," not in f["name"]
    ]
    words: list[str] = []
    if names and chance.once_in(5):
        words += ["--important", ",".join(chance.some(names, 1, 2))]
    if names and chance.once_in(6):
        words += ["--target", chance.choice(names)]
    if chance.once_in(5):
        words += ["--triples", str(chance.choice([1, 2, 5]))]
    return words


def _later(chance: Chance) -> list[str]:
    """Which tables the promise compares."""
    return ["--neighbours", "add-or-remove-one"] if chance.once_in(3) else []


def _nameless(chance: Chance, rows: int) -> dict[str, list[str]]:
    """A column without a name, as a separator too many makes it."""
    return {EMPTY: [""] * rows} if chance.any_name and chance.once_in(12) else {}


def _linked_focus(chance: Chance, parts: list[dict[str, Any]], keys: tuple[str, str]) -> list[str]:
    """What matters most of persons and events."""
    names = [
        f"{part['name']}.{f['name']}"
        for part in parts
        for f in part["schema"]["fields"]
        if f["name"] not in keys and not {"derived", "constant"} & set(f.get("covey", {}))
    ]
    names = [name for name in names if "," not in name]
    words = ["--triples", str(chance.choice([1, 3]))] if chance.once_in(3) else []
    if names and chance.once_in(5):
        words += ["--important", ",".join(chance.some(names, 1, 2))]
    return words + (["--target", chance.choice(names)] if names and chance.once_in(6) else [])


def _size(chance: Chance) -> list[str]:
    words: list[str] = []
    if chance.once_in(3):
        words += ["--rows", str(chance.choice([1, 2, 40, 500]))]
    if chance.once_in(6):
        words += ["--parquet"]
    strict = chance.once_in(5)
    if not strict or (chance.any_name and "--rows" in words):  # few of the strict ones are accepted
        words += ["--accept-misfits", "1"]
    return words


def _linked(chance: Chance, seed: int, kind: str, n: int) -> Case:
    """Persons with events, in two files or in one."""
    ids = [f"p{k}" for k in range(n)]
    at_most = chance.choice([1, 2, 4, 9, 30])
    owners = [who for who in ids for _ in range(chance.randint(kind == "alone", min(at_most + chance.once_in(9), 6)))]
    owners = owners or [ids[0]]
    chance.shuffle(owners)
    key, link = _keys(chance, kind)
    persons = draw_fields(chance, chance.randint(1, 3), (key,))
    events = draw_fields(chance, chance.randint(1, 3), (link, "day"))
    own: dict[str, Any] = {"at_most": at_most}
    orders = [
        f
        for f in events
        if f["type"] in ORDERED and not {"after", "difference_from", "derived"} & set(f.get("covey", {}))
    ]
    if chance.once_in(2):
        orders = orders or events.append(draw_field(chance, "day", chance.choice(["date", "integer"]))) or [events[-1]]
        orders[0].setdefault("constraints", {})["required"] = True
        own["order"] = orders[0]["name"]
        whole = orders[0]["type"] in ("date", "integer") and not {"bins", "special"} & set(orders[0].get("covey", {}))
        places = [word for word in ("positions", "gaps") if chance.once_in(3) and (word != "gaps" or whole)]
        if at_most > 1 or not chance.any_name:
            own |= dict.fromkeys(places, True)
        if orders[0]["type"] == "integer" and chance.once_in(4):
            own["numbered"] = True
            orders[0]["constraints"] |= {"minimum": 1, "maximum": 40}
            orders[0].pop("covey", None)
    reference = {"fields": link, "reference": {"resource": "people", "fields": key}}
    more = {link: owners} | _nameless(chance, len(owners))
    files = {"events.csv": draw_table(chance, events, len(owners), more, own.get("order"))}
    parts: list[dict[str, Any]] = [{"name": "events", "path": "events.csv", "covey": own}]
    parts[0]["schema"] = {"fields": [{"name": link, "type": "string"}, *events]} | _ruled(chance, events)
    document: dict[str, Any] = {"resources": parts}
    if kind == "alone":
        own["person"] = link
    else:
        files["people.csv"] = draw_table(chance, persons, n, {key: ids})
        parts[0]["schema"]["foreignKeys"] = [reference]
        schema = {"fields": [{"name": key, "type": "string"}, *persons], "primaryKey": key} | _ruled(chance, persons)
        parts.insert(0, {"name": "people", "path": "people.csv", "schema": schema})
        if chance.once_in(2):
            rule = _across(chance, parts, (key, link, own.get("order")))
            document |= {"covey": {"rules": [rule]}} if rule else {}
    words = _budget(chance) + _size(chance)
    if "covey" not in document:
        learning = Chance(-seed - 1)
        learning.any_name = chance.any_name
        _learn_some(learning, parts, (key, link), words[words.index("--delta") + 1] == "0")
    later = Chance(seed + 2 * RELATED) if seed >= LATER else None
    if later is not None:
        words += _later(later) + _linked_focus(later, parts, (key, link))
    case = Case(seed, kind, {"package.json": write(document), **files}, document, words, key=key, link=link)
    if later is not None and later.once_in(8) and '"learn"' not in case.files["package.json"]:
        case.named.add("prior")
    _name(case)
    return case


def _keys(chance: Chance, kind: str) -> tuple[str, str]:
    """The column that tells persons apart, and the one of events that names a person; they may be called alike."""
    if not chance.any_name:
        return "id", "whose"
    (link,) = draw_names(chance, 1)
    if kind == "alone":
        return "id", link
    return (link if chance.once_in(3) else draw_names(chance, 1)[0]), link


def _bases(fields: list[dict[str, Any]]) -> set[str]:
    """Fields that derived ones are computed from, which cannot be learned."""
    told = [f["covey"]["derived"] for f in fields if "derived" in f.get("covey", {})]
    said = [(*one.get("from", ()), one.get("expression", "")) for one in told]
    return {f["name"] for f in fields for *bases, text in said if f["name"] in bases or written(f["name"]) in text}


def _learn_some(chance: Chance, parts: list[dict[str, Any]], keys: tuple[str, str], pure: bool) -> None:
    """Some fields of a package that nothing else names are to be learned, in every third package."""
    for schema, own in [(part["schema"], part.get("covey", {})) for part in parts] if chance.once_in(3) else []:
        told = write({"rules": schema.get("covey", {}), "fields": [f.get("covey", {}) for f in schema["fields"]]})
        kept = {*keys, *([own["order"]] if own.get("numbered") else [])}
        for entry in schema["fields"]:
            named = entry["name"] in kept or "covey" in entry or write(entry["name"]) in told
            named = named or (chance.any_name and entry["name"] in _bases(schema["fields"]))
            if not named and not (pure and entry["type"] == "string") and chance.once_in(2):
                required = entry.pop("constraints", {}).get("required", False)
                entry |= {"covey": {"learn": True}} | ({"constraints": {"required": True}} if required else {})


def _ruled(chance: Chance, fields: list[dict[str, Any]]) -> dict[str, Any]:
    rules = draw_rules(chance, fields) if chance.once_in(2) else []
    return {"covey": {"rules": rules}} if rules else {}


def _across(chance: Chance, parts: list[dict[str, Any]], tied: tuple[str | None, ...]) -> dict[str, Any] | None:
    """A rule about a field of the events and one of the persons, mostly about such as may stand in one."""
    found = []
    for part in parts:
        fields, rules = part["schema"]["fields"], part["schema"].get("covey", {}).get("rules", [])
        bases = {f.get("covey", {}).get(word) for f in fields for word in ("after", "difference_from")}
        free = [
            f
            for f in fields
            if f["name"] not in (*tied, *bases)
            and not {"bins", "after", "difference_from"} & set(f.get("covey", {}))
            and write(f["name"]) not in write({"rules": rules})
        ]
        there = fields[1:] if chance.once_in(8) else free
        there = [f for f in there if not {"constant", "derived"} & set(f.get("covey", {}))]
        if not there:
            return None
        own = chance.choice(there)
        found.append({f"{part['name']}.{own['name']}": draw_condition(chance, own)})
    mine, theirs = found
    return {"forbid": mine | theirs} if chance.once_in(2) else {"requires": {"if": mine, "then": theirs}}


def _name(case: Case) -> None:
    """What the case exercises."""
    words, named = case.words, case.named
    named.add(f"kind {case.kind}")
    named.add("option pure" if words[words.index("--delta") + 1] == "0" else "option delta")
    named |= {f"option {word}" for word in OPTIONS if f"--{word}" in words and word not in ("delta", "pure")}
    named |= {"option large"} if "--confirm-large-epsilon" in words else set()
    named |= {"option misfits"} if "--accept-misfits" in words else set()
    if "prior" in named:
        named.remove("prior")
        named.add("linked prior" if case.linked else "option prior")
    if case.linked:
        named |= {f"linked {word}" for word in LINKS if f"--{word}" in words}
        named -= {"option triples", "option target", "option important"}
    if case.seed >= LATER and Chance(case.seed + 3 * RELATED).once_in(4):
        named.add("option gaussian ledger")
    if case.seed >= ANY_NAME:
        named |= {f"name {name!r}" for text in case.files.values() for name in next(csv.reader(io.StringIO(text)))}
    for schema in case.schemas().values():
        for entry in schema["fields"]:
            own = entry.get("covey", {})
            named.add(f"type {entry['type']}")
            named |= {f"field {tie}" for tie in (*TIES, *EXPECTED) if tie in own}
            named |= {"field required"} if entry.get("constraints", {}).get("required") else set()
        named |= {f"rule {next(iter(rule))}" for rule in schema.get("covey", {}).get("rules", [])}
    for part in (case.document or {}).get("resources", []):
        named |= {f"linked {word}" for word in LINKS if word in part.get("covey", {})}
    if case.linked and (case.document or {}).get("covey"):
        named.add("linked rules across")


__all__ = ["EXPECTED", "KINDS", "LINKS", "NUMBERS", "OPTIONS", "TIES", "draw_case"]
