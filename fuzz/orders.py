"""A case for every seed: which kind of table, how it is described, and how its release is ordered."""

from __future__ import annotations

from typing import Any

from fuzz.cases import (
    NUMBERS,
    ORDERED,
    Case,
    Chance,
    draw_condition,
    draw_field,
    draw_fields,
    draw_rules,
    draw_table,
    expect,
    write,
)

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


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    chance = Chance(seed)
    kind = chance.choice(KINDS)
    rows = chance.choice([20, 25, 35, 60, 120, 300])
    if kind in ("package", "alone"):
        return _linked(chance, seed, kind, rows)
    fields = draw_fields(chance, chance.randint(1, 5))
    later = Chance(seed + 2 * RELATED) if seed >= LATER else None
    if later is not None and later.once_in(3):
        expect(later, fields)
    for entry in fields if kind == "learned" and chance.once_in(2) else ():
        if not entry.get("covey") and chance.once_in(2):
            entry["covey"] = {"learn": True}
    more = {"whose": [f"p{chance.randrange(max(5, rows // 2))}" for _ in range(rows)]} if kind == "person" else {}
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
        words += ["--person", "whose"]
    elif chance.once_in(8):
        words += ["--rows-per-person", "2"]
    learned = any(entry.get("covey", {}).get("learn") for entry in fields)
    if kind == "learned" and not learned:
        words += ["--learn"]
    if later is not None:
        words += _later(later)
    if kind in ("table", "person") and not learned and Chance(seed + RELATED).once_in(5):
        # With so few rows relations are looked for at a budget that nobody should spend.
        words = ["--learn-relations", "--confirm-large-epsilon", *words]
        words[words.index("--epsilon") + 1] = "60"
    drawn = kind in ("table", "person") or learned
    case = Case(seed, kind, {"table.csv": table}, document if drawn else None, words)
    if drawn:
        case.files["schema.json"] = write(document)
        if chance.once_in(8) and not learned:
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


def _linked_focus(chance: Chance, parts: list[dict[str, Any]]) -> list[str]:
    """What matters most of persons and events."""
    names = [
        f"{part['name']}.{f['name']}"
        for part in parts
        for f in part["schema"]["fields"]
        if f["name"] not in ("id", "whose") and not {"derived", "constant"} & set(f.get("covey", {}))
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
    if not chance.once_in(5):
        words += ["--accept-misfits", "1"]
    return words


def _linked(chance: Chance, seed: int, kind: str, n: int) -> Case:
    """Persons with events, in two files or in one."""
    ids = [f"p{k}" for k in range(n)]
    at_most = chance.choice([1, 2, 4, 9, 30])
    owners = [who for who in ids for _ in range(chance.randint(kind == "alone", min(at_most + chance.once_in(9), 6)))]
    owners = owners or [ids[0]]
    chance.shuffle(owners)
    persons = draw_fields(chance, chance.randint(1, 3), ("id",))
    events = draw_fields(chance, chance.randint(1, 3), ("id",))
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
        own |= {word: True for word in ("positions", "gaps") if chance.once_in(3) and (word != "gaps" or whole)}
        if orders[0]["type"] == "integer" and chance.once_in(4):
            own["numbered"] = True
            orders[0]["constraints"] |= {"minimum": 1, "maximum": 40}
            orders[0].pop("covey", None)
    link = {"fields": "whose", "reference": {"resource": "people", "fields": "id"}}
    files = {"events.csv": draw_table(chance, events, len(owners), {"whose": owners}, own.get("order"))}
    parts: list[dict[str, Any]] = [{"name": "events", "path": "events.csv", "covey": own}]
    parts[0]["schema"] = {"fields": [{"name": "whose", "type": "string"}, *events]} | _ruled(chance, events)
    document: dict[str, Any] = {"resources": parts}
    if kind == "alone":
        own["person"] = "whose"
    else:
        files["people.csv"] = draw_table(chance, persons, n, {"id": ids})
        parts[0]["schema"]["foreignKeys"] = [link]
        schema = {"fields": [{"name": "id", "type": "string"}, *persons], "primaryKey": "id"} | _ruled(chance, persons)
        parts.insert(0, {"name": "people", "path": "people.csv", "schema": schema})
        if chance.once_in(2):
            rule = _across(chance, parts, own.get("order"))
            document |= {"covey": {"rules": [rule]}} if rule else {}
    words = _budget(chance) + _size(chance)
    if "covey" not in document:
        _learn_some(Chance(-seed - 1), parts, words[words.index("--delta") + 1] == "0")
    later = Chance(seed + 2 * RELATED) if seed >= LATER else None
    if later is not None:
        words += _later(later) + _linked_focus(later, parts)
    case = Case(seed, kind, {"package.json": write(document), **files}, document, words)
    if later is not None and later.once_in(8) and '"learn"' not in case.files["package.json"]:
        case.named.add("prior")
    _name(case)
    return case


def _learn_some(chance: Chance, parts: list[dict[str, Any]], pure: bool) -> None:
    """Some fields of a package that nothing else names are to be learned, in every third package."""
    for schema, own in [(part["schema"], part.get("covey", {})) for part in parts] if chance.once_in(3) else []:
        told = write({"rules": schema.get("covey", {}), "fields": [f.get("covey", {}) for f in schema["fields"]]})
        kept = {"id", "whose", *([own["order"]] if own.get("numbered") else [])}
        for entry in schema["fields"]:
            named = entry["name"] in kept or "covey" in entry or f'"{entry["name"]}"' in told
            if not named and not (pure and entry["type"] == "string") and chance.once_in(2):
                required = entry.pop("constraints", {}).get("required", False)
                entry |= {"covey": {"learn": True}} | ({"constraints": {"required": True}} if required else {})


def _ruled(chance: Chance, fields: list[dict[str, Any]]) -> dict[str, Any]:
    rules = draw_rules(chance, fields) if chance.once_in(2) else []
    return {"covey": {"rules": rules}} if rules else {}


def _across(chance: Chance, parts: list[dict[str, Any]], order: str | None) -> dict[str, Any] | None:
    """A rule about a field of the events and one of the persons, mostly about such as may stand in one."""
    found = []
    for part in parts:
        fields, rules = part["schema"]["fields"], part["schema"].get("covey", {}).get("rules", [])
        bases = {f.get("covey", {}).get(word) for f in fields for word in ("after", "difference_from")}
        free = [
            f
            for f in fields
            if f["name"] not in ("id", "whose", order, *bases)
            and not {"bins", "after", "difference_from"} & set(f.get("covey", {}))
            and f'"{f["name"]}"' not in write({"rules": rules})
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
