"""What a ride of the odometer exercises, counted on the ride itself: a ride that is empty where its name is full fails.

Of every ride: neighbours differ in no more rows than a person has, some in exactly so many; with a column of persons in one
person; every choice has two candidates at least; every rule is kept by the table and broken by a neighbour. What else a ride is
there for it declares, by these names:

    charge PURPOSE      noisy values that a charge paid for
    law LAW             noisy values of a law
    candidates          the fewest of any choice
    labels              labels that were named
    missing             the share of missing cells in the emptiest learned column
    learned             columns with a domain that was learned
    drafted             columns whose names and types were read off the table
    prior               rows of an earlier release
    rule KIND           neighbours that break a rule of a kind; "rule across" is one across linked tables
    field WORD          fields that are derived, have levels, special values, or follow others
    rows of a person    that change at once
    spent PURPOSE, LAW  the largest share of such a charge that a neighbour shows to be spent: where more than half is, half of
                        the noise would be noticed. Where units are added or removed, "spent PURPOSE, LAW, added". Where several
                        functions ask under one purpose, also "spent PURPOSE by FUNCTION, …".
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache

import numpy as np

from audits import events
from covey.tables.codec import Codec
from covey.tables.sources import read_table


def unproven(one, subject, tape):
    """What a ride does not exercise although it should, in words."""
    breaches = {name: broken(subject, other) for name, other in one.neighbours.items()}
    shown = evidence(one, subject, tape, breaches)
    k, most = tape.budget.rows_per_person, shown["rows of a person"]
    for name, other in one.neighbours.items():
        count = changed(one.table, other)
        if not 0 < count <= k:
            yield f"{name} differs in {count} rows or persons, and neighbours differ in one to {k}"
    if most < k:
        yield f"a person has {k} rows, and no neighbour replaces more than {most}"
    if shown["candidates"] == 1:
        yield "there is a choice among one"
    for rule, count in broken(subject, one.table).items():
        if count:
            yield f"the table itself breaks the rule {rule}"
        elif not any(found[rule] for found in breaches.values()):
            yield f"no neighbour breaks the rule {rule}"
    yield from lacking({name: least for name, least in one.exercises.items() if not name.startswith(SPENDING)}, shown)


def unspent(one, shares):
    """Charges of which no neighbour of a ride shows as much to be spent as the ride declares, in words."""
    return lacking({name: least for name, least in one.exercises.items() if name.startswith(SPENDING)}, shares)


def lacking(exercises, shown):
    """What is shown less than it should be, in words."""
    for name, least in exercises.items():
        if shown[name] < least:
            yield f"it does not exercise {name!r}: {shown[name]:.3g} where {least:.3g} is asked for"


SPENDING = "spent "
MORE_THAN_HALF = 0.501


def names_of_spending(entry, budget):
    """Under which names a passage through the gate counts as evidence of spending."""
    law = f"{entry.line.law.name}, added" if budget.size_is_secret else entry.line.law.name
    return f"{SPENDING}{entry.line.purpose}, {law}", f"{SPENDING}{entry.line.purpose} by {entry.asker}, {law}"


def evidence(one, subject, tape, breaches):
    """How much of everything a ride shows, by name; `breaches` are the rules that each neighbour breaks."""
    shown = Counter({"rows of a person": max(changed(one.table, other) for other in one.neighbours.values())})
    for entry in tape.entries:
        shown[f"charge {entry.line.purpose}"] += int(np.size(entry.released))
        shown[f"law {entry.line.law.name}"] += int(np.size(entry.released))
        if entry.line.law.name in ("choice", "gumbel"):
            count = np.size(entry.exact) if entry.line.law.name == "choice" else np.count_nonzero(entry.block)
            shown["candidates"] = min(shown["candidates"] or np.inf, count)
        if hasattr(entry, "threshold"):
            shown["labels"] += len(entry.released)
    privacy = subject.privacy
    shown["learned"] = 0 if privacy is None else len(privacy.learned)
    if privacy is not None and not events.is_linked(subject):
        shown["prior"] = len(subject._by_table.prior.codes) if privacy.prior else 0
        holes = [np.mean([cell == "" for cell in one.table[name]]) for name in privacy.learned]
        shown["missing"] = max(holes, default=0)
    shown["drafted"] = getattr(subject, "drafted", 0)
    for found in breaches.values():
        shown.update({f"rule {kind_of(rule)}" for rule, count in found.items() if count})
    for field in schema_of(subject).fields if schema_of(subject) is not None else ():
        words = {"derived": field.derived, "levels": field.levels, "special": field.special, "follows": field.follows}
        shown.update(f"field {word}" for word, what in words.items() if what)
    return shown


def schema_of(subject):
    """The schema of one table, if there is one."""
    schema = subject.schema
    return None if schema is None or events.is_linked(subject) else schema


def kind_of(rule):
    """The word of a rule in a file."""
    return rule if isinstance(rule, str) else next(iter(rule.to_dict()))


codec_of = cache(Codec)  # which looks for a row that keeps all rules


def broken(subject, table):
    """How many rows break each rule; rules across linked tables are counted together."""
    if events.is_linked(subject):
        return {"across": subject.prepare(table).broken} if subject.described.rules else {}
    schema = schema_of(subject)
    if schema is None or not schema.rules:
        return {}
    codec, declared = codec_of(schema), subject._declared.rules  # those that were found are the release's own
    with warnings.catch_warnings():  # what a planted fault tells here leaves no fit
        warnings.simplefilter("ignore")
        found = codec.encode_part(read_table(table, schema), "cells")[1].broken
        return {rule: count for rule, count in found.items() if rule in declared}


def changed(table, other):
    """In how many rows two tables differ, replaced, added or removed; of tables that name persons, in how many persons."""
    one, two = units(table), units(other)
    if isinstance(one, list):
        if len(one) != len(two):
            one, two = Counter(map(repr, one)), Counter(map(repr, two))
            return max((one - two).total(), (two - one).total())
        return sum(a != b for a, b in zip(one, two, strict=True))
    return sum(one.get(person) != two.get(person) for person in {*one, *two})


def units(table):
    """Rows, or by person all that is theirs, in no order."""
    if not isinstance(table, dict):
        return [tuple(row) for row in np.asarray(table).tolist()]
    if "visits" in table:  # linked
        found = {who: [row] for who, *row in records(table["people"])} if "people" in table else {}
        return gathered(records(table["visits"]), found)
    return gathered(records(table), {}) if "who" in table else records(table)


def records(columns):
    return list(zip(*columns.values(), strict=True))


def gathered(rows, found):
    for who, *row in rows:
        found.setdefault(who, []).append(row)
    return {who: sorted(map(repr, rows)) for who, rows in found.items()}
