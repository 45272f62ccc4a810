"""The measurements of a release on disk: measurements.npz holds the noisy numbers, measurements.json says what they are.

Only what the gate gave back can be written: the types of `covey.methods.regain.measured` are made of noisy moments and noisy
counts. An array of records, an exact moment or a sealed value has no way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats, symmetric
from covey.core.fit.targets import NoisyMoments
from covey.core.fit.terms import Parities, parity_masks
from covey.core.noise.pairlaw import PairLaw
from covey.core.tables.coding import UNIT, Coding
from covey.core.tables.domain import Domain
from covey.core.tables.triples import Triples
from covey.errors import InputError
from covey.methods.regain.important import ImportantPairs
from covey.methods.regain.measure import Means
from covey.methods.regain.measured import (
    MeasuredBits,
    MeasuredGroups,
    MeasuredNumbers,
    MeasuredRanges,
    Measurements,
)
from covey.methods.regain.triples import MeasuredTriples
from covey.release.reading import read_arrays, read_json
from covey.table.document import write_document

FORMAT = 1  # of these two files; a reader refuses the others
NUMBERS, DESCRIPTION = "measurements.npz", "measurements.json"
NOTE = "Outputs of the private mechanism, noise included: they cost nothing more. sd is the noise's standard deviation."


def pack(measured: Measurements) -> tuple[dict[str, Any], dict[str, Array]]:
    """A description, and arrays by name."""
    if isinstance(measured, MeasuredBits):
        return _pack_bits(measured)
    if isinstance(measured, MeasuredNumbers):
        return _pack_numbers(measured)
    raise TypeError("only measurements that a gate gave back can be written.")


def write_measurements(measured: Measurements, names: tuple[str, ...], folder: Path) -> None:
    """Both files."""
    facts, arrays = pack(measured)
    facts = {"format": FORMAT, "note": NOTE, "columns": list(names), **facts}
    write_document(folder / DESCRIPTION, facts)
    np.savez(folder / NUMBERS, allow_pickle=False, **arrays)  # type: ignore[arg-type, unused-ignore]


def read_measurements(folder: Path, sizes: tuple[int, ...], ordered: tuple[bool, ...]) -> Measurements | None:
    """The measurements of a bundle, if it has any, checked against the codes that its schema gives each column."""
    if not (folder / DESCRIPTION).is_file() or not (folder / NUMBERS).is_file():
        return None
    facts = read_json(folder / DESCRIPTION)
    if facts.get("format") != FORMAT:
        raise InputError(
            f"{DESCRIPTION} has format {facts.get('format')}, and this covey reads {FORMAT}: update covey."
        )
    arrays = read_arrays(folder / NUMBERS)
    try:
        found = _unpack(facts, arrays, ordered)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{NUMBERS} and {DESCRIPTION} do not fit together: {error}.") from None
    problem = _problem(found, sizes)
    if problem:
        raise InputError(f"{DESCRIPTION} does not belong to this bundle: {problem}.")
    return found


def _unpack(facts: Mapping[str, Any], arrays: Mapping[str, Array], ordered: tuple[bool, ...]) -> Measurements:
    if facts["kind"] == "bits":
        return _unpack_bits(facts, arrays)
    return _unpack_numbers(facts, arrays, ordered)


def _problem(found: Measurements, sizes: tuple[int, ...]) -> str:
    """What is wrong with measurements of columns of these sizes."""
    if isinstance(found, MeasuredBits):
        if found.means.values.shape != (len(sizes),) or any(size != 2 for size in sizes):
            return f"it has {len(found.means.values)} flags, and the schema has others"
        sds = [found.means.sd, *([] if found.moments is None else [found.moments.mean_sd, found.moments.pair_sd])]
    else:
        if tuple(int(own.edges[-1]) for own in found.one_way) != sizes:
            return "its tables have other sizes than the schema's columns"
        if any(not len(own.counts) == len(own.sds) == len(own.edges) - 1 for own in found.one_way):
            return "its tables have other sizes than their ranges"
        if any(len(e) != len(m) + 1 for e, m in zip(found.cells, found.maps, strict=True)):
            return "its bins are made of other cells"
        sds = [sd for own in found.one_way for sd in own.sds]
        sds += [] if found.triples is None else [found.triples.sd]
        total = found.law.domain.total
        if found.pairs.shape != (total, total) or len(found.maps) != len(sizes):
            return "its pair tables have other sizes than their bins"
    return "" if all(np.isfinite(sd) and sd >= 0 for sd in sds) else "the noise of a table has no size"


# Bits.


def _pack_bits(m: MeasuredBits) -> tuple[dict[str, Any], dict[str, Array]]:
    facts: dict[str, Any] = {
        "kind": "bits",
        "n": m.n,
        "plan": m.mechanism,
        "pure": m.pure,
        "cut": m.cut,
        "means": {"sd": m.means.sd, "about": "share of rows with the second of the two categories"},
    }
    arrays: dict[str, Array] = {"means": m.means.values}
    if m.moments is not None:
        coding = m.moments.coding
        facts["moments"] = {
            "about": "u = row - centre (cut to the radius if cut is true): means of u, and of products above the diagonal",
            "radius_squared": str(Fraction(coding.radius_squared, UNIT**2)),
            "clips": coding.clips,
            "mean_sd": m.moments.mean_sd,
            "pair_sd": m.moments.pair_sd,
        }
        above = np.triu_indices(len(m.moments.mean), 1)
        arrays |= {"centre": coding.centre, "coded_means": m.moments.mean, "coded_pairs": m.moments.pair[above]}
    if m.row_sums is not None:
        facts["row_sums"] = {"sd": m.row_sums.sd, "about": "share of rows by number of ones"}
        arrays["row_sums"] = m.row_sums.values
    if m.parities is not None:
        p = m.parities
        facts["parities"] = {
            "about": "means of products of three and four signs, 1 for a one and -1 for a zero",
            "triple_sd": p.triple_sd,
            "quad_sd": p.quad_sd,
        }
        three, four = parity_masks(len(p.triple))
        arrays |= {"triples": p.triple[three], "quads": p.quad[four]}
    return facts, arrays


def _unpack_bits(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> MeasuredBits:
    means, moments, row_sums, parities = arrays["means"], None, None, None
    p = len(means)
    if "moments" in facts:
        said = facts["moments"]
        radius = int(Fraction(said["radius_squared"]) * UNIT**2)
        coding = Coding(arrays["centre"], radius, bool(said["clips"]))
        pairs = symmetric(arrays["coded_pairs"], p)
        moments = NoisyMoments(coding, arrays["coded_means"], said["mean_sd"], pairs, said["pair_sd"])
    if "row_sums" in facts:
        row_sums = Means(arrays["row_sums"], facts["row_sums"]["sd"])
    if "parities" in facts:
        masks = parity_masks(p)
        values = [_placed(arrays[name], mask) for name, mask in zip(("triples", "quads"), masks, strict=True)]
        parities = Parities(values[0], facts["parities"]["triple_sd"], values[1], facts["parities"]["quad_sd"])
    own = Means(means, facts["means"]["sd"])
    return MeasuredBits(facts["n"], facts["plan"], facts["pure"], own, moments, bool(facts["cut"]), row_sums, parities)


def _placed(values: Array, mask: Array) -> Floats:
    out = np.zeros(mask.shape)
    out[mask] = values
    return out


def _law_facts(law: PairLaw, what: str) -> dict[str, Any]:
    return {
        "law": law.family,
        "scale": str(law.scale),
        "steps": law.steps,
        "sd": 0.0 if law.family == "none" else law.sd,
        "about": f"counts of pairs of bins, centred in every table, above the diagonal; maps: {what} to bin",
    }


def _law(said: Mapping[str, Any], maps: list[Array], ordered: tuple[bool, ...]) -> PairLaw:
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), ordered)
    return PairLaw(said["law"], merged, Fraction(said["scale"]), said["steps"])


# Categories and numbers.

_PARTS = ("edges", "counts", "sds", "cells", "maps")  # arrays of a column; the first three are about its own counts


def _pack_numbers(m: MeasuredNumbers) -> tuple[dict[str, Any], dict[str, Array]]:
    facts: dict[str, Any] = {
        "kind": "numbers",
        "n": m.n,
        "pure": m.pure,
        "codes": "special values, then missing unless required, then of a difference 'without a base', then values from the "
        "least one on, in steps of the field's precision; of a category its labels, then missing",
        "one_way": {"about": "by column: counts of the codes between edges, and the sds of their noise"},
        "pairs": _law_facts(m.law, "cell; cells: codes at which they begin"),
    }
    arrays: dict[str, Array] = {"pairs": m.pairs[np.triu_indices(len(m.pairs), 1)]}
    if m.important is not None:
        blocks = [m.important.tables[m.law.domain.block(a), m.law.domain.block(b)] for a, b in m.important.pairs]
        facts["important"] = {
            "pairs": [list(pair) for pair in m.important.pairs],
            "sd": m.important.sd,
            "about": "a second measurement of these pairs of columns: centred tables as shares, one after the other",
        }
        arrays["important"] = np.concatenate([block.ravel() for block in blocks])
    if m.groups:
        facts["groups"] = {
            "sds": {str(j): groups.sd for j, groups in m.groups.items()},
            "about": "by column: the group of each category, and the counts of groups, a second measurement",
        }
        for j, groups in m.groups.items():
            arrays |= {f"{j} groups": groups.of, f"{j} group counts": groups.counts}
    if m.triples is not None:
        facts["triples"] = {
            "columns": [list(triple) for triple in m.triples.triples.names],
            "sd": m.triples.sd,
            "about": "counts of triples of columns that were chosen with noise, one table after the other; levels: cell to level",
        }
        arrays["triples"] = np.concatenate([table.ravel() for table in m.triples.tables])
        arrays |= {f"{j} levels": levels for j, levels in m.triples.triples.levels.items()}
    for j, (own, cells, bins) in enumerate(zip(m.one_way, m.cells, m.maps, strict=True)):
        parts = (own.edges, own.counts, own.sds, cells, bins)
        arrays |= {f"{j} {name}": part for name, part in zip(_PARTS, parts, strict=True)}
    return facts, arrays


def _unpack_numbers(
    facts: Mapping[str, Any], arrays: Mapping[str, Array], ordered: tuple[bool, ...]
) -> MeasuredNumbers:
    found = [[arrays[f"{j} {name}"] for name in _PARTS] for j in range(len(ordered))]
    cells, maps = [own[3] for own in found], [own[4] for own in found]
    law = _law(facts["pairs"], maps, ordered)
    pairs = symmetric(arrays["pairs"], law.domain.total)
    one_way = [MeasuredRanges(*own[:3]) for own in found]
    important = _unpack_important(facts["important"], arrays["important"], law.domain) if "important" in facts else None
    sds = facts["groups"]["sds"] if "groups" in facts else {}
    groups = {int(j): MeasuredGroups(arrays[f"{j} groups"], arrays[f"{j} group counts"], sd) for j, sd in sds.items()}
    for j, own in groups.items():
        if len(own.of) != len(one_way[j].counts) or len(own.counts) != own.of.max() + 1:
            raise ValueError("groups of other categories than the column's")
    three = _unpack_triples(facts["triples"], arrays, cells) if "triples" in facts else None
    return MeasuredNumbers(facts["n"], facts["pure"], one_way, cells, maps, law, pairs, important, groups, three)


def _unpack_triples(said: Mapping[str, Any], arrays: Mapping[str, Array], cells: Sequence[Array]) -> MeasuredTriples:
    names = tuple((int(a), int(b), int(c)) for a, b, c in said["columns"])
    triples = Triples(names, {x: arrays[f"{x} levels"] for triple in names for x in triple})
    if any(len(levels) != len(cells[x]) - 1 for x, levels in triples.levels.items()):
        raise ValueError("levels of other cells than the column's")
    tables, at = [], 0
    for triple in names:
        a, b, c = triples.sizes(triple)
        tables.append(arrays["triples"][at : at + a * b * c].reshape(a, b, c))
        at += a * b * c
    if at != len(arrays["triples"]):
        raise ValueError("tables of other triples than those that were chosen")
    return MeasuredTriples(triples, tuple(tables), float(said["sd"]))


def _unpack_important(said: Mapping[str, Any], values: Array, domain: Domain) -> ImportantPairs:
    pairs = [(int(a), int(b)) for a, b in said["pairs"]]
    tables, at = np.zeros((domain.total, domain.total)), 0
    for a, b in pairs:
        one, two = domain.block(a), domain.block(b)
        size = domain.sizes[a] * domain.sizes[b]
        tables[one, two] = values[at : at + size].reshape(domain.sizes[a], domain.sizes[b])
        tables[two, one], at = tables[one, two].T, at + size
    if at != len(values):
        raise ValueError("tables of other pairs than the important ones")
    return ImportantPairs(pairs, tables, float(said["sd"]))
