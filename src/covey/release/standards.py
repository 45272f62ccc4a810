"""A bundle in the words of others: MLCommons Croissant, DCAT for catalogues, and an entry for the registry of deployments.

From public things alone. What only the steward knows (who publishes, on what legal basis, for which region) is left for the
steward to fill in: docs/guides/catalogues.md says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from covey.privacy.budget import Budget
from covey.release.contents import AnonymousRelease, AnyRelease, PrivateRelease
from covey.release.statements import guarantee_words
from covey.table.description import Description

STEWARD = "to be filled in by the data owner"
SYNTHETIC = "http://publications.europa.eu/resource/authority/dataset-type/SYNTHETIC_DATA"  # of the European vocabulary
METHOD = "https://arxiv.org/abs/2107.05824"  # the paper that covey implements
_TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "time": "sc:Time",
    "string": "sc:Text",
}
_CROISSANT_WORDS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet "
    "format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex "
    "repeated replace samplingRate separator source subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{word: f"cr:{word}" for word in _CROISSANT_WORDS.split()},
}


def croissant(release: AnyRelease, files: Mapping[str, str], made: str) -> dict[str, Any]:
    """Croissant 1.1 metadata of the synthetic tables, in files with these SHA-256 digests.

    Columns, where they come from, and what responsible use has to know.
    """
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": "synthetic",
        "description": f"{_title(release)} made by covey. See README.md for what it protects and how accurate it is.",
        "datePublished": made,
        "version": release.version,
        "citeAs": f"covey {release.version}, after Boedihardjo, Strohmer, Vershynin: {METHOD}",
        **_provenance(release),
        **_responsible(release),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": table,
                "name": table,
                "contentUrl": table,
                "encodingFormat": _media_type(table),
                "sha256": digest,
            }
            for table, digest in files.items()
        ],
        "recordSet": _records(release.described.plain(), list(files)),
    }


def _records(described: Description, files: list[str]) -> list[dict[str, Any]]:
    """The tables; in one that belongs to another the column of keys refers to that one's."""
    several = described.schema is None
    names = {part.name: part.name if several else "rows" for part in described.tables}
    out = []
    for part, file in zip(described.tables, files, strict=True):
        fields: list[dict[str, Any]] = [
            {
                "@type": "cr:Field",
                "@id": f"{names[part.name]}/{i}",
                "name": field.name,
                "dataType": "sc:Text" if field.special else _TYPES[field.type],
                "source": {"fileObject": {"@id": file}, "extract": {"column": field.name}},
            }
            for i, field in enumerate(part.released.fields)
        ]
        if part.parent is not None:  # keys come first
            fields[0]["references"] = {"field": {"@id": f"{part.parent.table}/0"}}
        own = {"@type": "cr:RecordSet", "@id": names[part.name], "name": names[part.name], "field": fields}
        out.append(own | ({"key": {"@id": fields[0]["@id"]}} if several and part.key is not None else {}))
    return out


def _provenance(release: AnyRelease) -> dict[str, Any]:
    """Where the rows come from, in the words of PROV-O: a confidential table, which is not named, and this program."""
    agent = {"@type": "prov:SoftwareAgent", "prov:label": f"covey {release.version}"}
    return {
        "prov:wasDerivedFrom": {"@type": "prov:Entity", "prov:label": f"a confidential table of {_counted(release)}"},
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": _promise(release),
            "prov:used": METHOD,
            "prov:wasAssociatedWith": agent,
        },
    }


def _responsible(release: AnyRelease) -> dict[str, Any]:
    """Fields of the responsible AI vocabulary that concern synthetic data."""
    private = not isinstance(release, AnonymousRelease)
    disclosed = "no row belongs to a person" if private else "rows are averages of groups, NOT differentially private"
    return {
        "rai:hasSyntheticData": True,
        "rai:dataCollectionType": "Synthetic",
        "rai:dataCollection": f"All rows were drawn from a model fitted to a confidential table of {_counted(release)}.",
        "rai:dataPreprocessingProtocol": "Cells were read under the public schema: clipped to its bounds, unknown labels mapped.",
        "rai:personalSensitiveInformation": f"Columns may be about sensitive things; {disclosed}: {_promise(release)}.",
        "rai:dataLimitations": "Single columns and pairs of columns are kept, with an error that certificate.json bounds; "
        "relations of three and more columns only as far as they follow from pairs. Counts of rare cases are noise.",
        "rai:dataBiases": (
            "Biases of the confidential table are kept. The noise is the same for all groups, so small groups have larger "
            "relative errors."
        ),
        "rai:dataUseCases": "Teaching, testing programs, and questions that `covey ask` answers with error bars.",
    }


def dcat(release: AnyRelease, files: Mapping[str, str], made: str) -> dict[str, Any]:
    """A DCAT entry for a data catalogue, with the properties of HealthDCAT-AP that follow from the release."""
    digest, found = next(iter(files.values())), [_distribution(*file) for file in files.items()]
    return {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "prov": "http://www.w3.org/ns/prov#",
            "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
            "skos": "http://www.w3.org/2004/02/skos/core#",
            "spdx": "http://spdx.org/rdf/terms#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "healthdcatap": "http://healthdataportal.eu/ns/health#",
            # For what the steward adds: docs/guides/catalogues.md.
            "dcatap": "http://data.europa.eu/r5r/",
            "eli": "http://data.europa.eu/eli/ontology#",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "vcard": "http://www.w3.org/2006/vcard/ns#",
        },
        "@id": f"urn:sha256:{digest}",
        "@type": "dcat:Dataset",
        "dct:title": {"@value": _title(release), "@language": "en"},
        "dct:description": {"@value": f"{_promise(release)}. Made from {_counted(release)}.", "@language": "en"},
        "dct:identifier": f"urn:sha256:{digest}",
        "dct:issued": {"@value": made, "@type": "xsd:date"},
        "dcat:version": release.version,
        "dct:type": {
            "@id": SYNTHETIC,
            "@type": "skos:Concept",
            "skos:prefLabel": {"@value": "Synthetic data", "@language": "en"},
        },
        "dcat:keyword": [{"@value": word, "@language": "en"} for word in ("synthetic data", *_privacy_words(release))],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": {"@value": f"drawn by covey {release.version} from a private model", "@language": "en"},
        },
        "healthdcatap:numberOfRecords": {"@value": str(release.parts.m), "@type": "xsd:nonNegativeInteger"},
        "dcat:distribution": found[0] if len(found) == 1 else found,
    }


def _distribution(table: str, digest: str) -> dict[str, Any]:
    """One file of a bundle."""
    return {
        "@type": "dcat:Distribution",
        "dct:title": {"@value": table, "@language": "en"},
        # Beside this file; the steward may put an address.
        "dcat:accessURL": {"@id": table, "@type": "rdfs:Resource"},
        "dcat:mediaType": {
            "@id": f"https://www.iana.org/assignments/media-types/{_media_type(table)}",
            "@type": "dct:MediaType",
        },
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256", "@type": "spdx:ChecksumAlgorithm"},
            "spdx:checksumValue": {"@value": digest, "@type": "xsd:hexBinary"},
        },
    }


def _title(release: AnyRelease) -> str:
    return (
        "Synthetic table" if release.described.schema is not None else "Synthetic tables of persons with their events"
    )


def deployment(release: PrivateRelease, made: str) -> dict[str, Any]:
    """An entry for the registry of deployments of differential privacy, in its layout; it is read as YAML."""
    privacy, budget = release.privacy, release.privacy.budget
    columns = ", ".join(name for name, _ in release.described.fields)
    single = release.described.schema is not None
    counted, file = ("rows", "schema.json") if single else ("persons", "datapackage.json")
    return {
        "url_slug": STEWARD,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": STEWARD,
                "data_curators": [STEWARD],
                "description": f"{_title(release)} ({release.parts.m} {counted}), made from {_counted(release)}.",
                "intended_use": STEWARD,
                "data_product_type": "Synthetic data",
                "data_product_region": STEWARD,
                "publication_date": made,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if budget.pure else "Approximate DP",
                "data_domain": f"Tables of {_counted(release)} with the public columns {columns}, as in {file}.",
                "unprotected_quantities": f"The number of {budget.counted}, the schema and the method are public.",
            },
            "privacy_loss": {
                "privacy_unit": "User-level" if budget.persons or budget.rows_per_person > 1 else "Record-level",
                "privacy_unit_details": f"{budget.protects}; neighbouring tables: {budget.compared()}",
                "privacy_parameters": {"epsilon": float(budget.epsilon), "delta": float(budget.delta)},
                "privacy_parameters_details": f"{guarantee_words(budget)}. {_steps(privacy.charges, budget)}",
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "The model and the synthetic rows use only what was measured with noise.",
                "composition": f"Sequential, in {budget.unit}, of the charges named above.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Cells are read under the public schema. Nothing is tuned.",
                "mechanisms": f"Noise on counts and moments ({privacy.noise_words}); synthetic rows by post-processing "
                f"(covey {release.version}, method {privacy.mechanism}).",
                "justification": STEWARD,
            },
            "administrative": {
                "sources": f"Covariance's Loss is Privacy's Gain, {METHOD}",
                "registry_authors": [STEWARD],
            },
        },
    }


def as_yaml(value: Any) -> str:
    """JSON that is YAML too: readers of YAML 1.1 take 1e-06 for a text, and 1.0e-06 for a number."""
    return re.sub(r'": (-?\d+)e', r'": \1.0e', json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def _steps(charges: Any, budget: Budget) -> str:
    parts = ", ".join(f"{c.purpose} {float(c.amount):.4g}" for c in charges)
    return f"Spent, in {budget.unit}: {parts}."


def _promise(release: AnyRelease) -> str:
    if isinstance(release, AnonymousRelease):
        return f"{release.group_size}-anonymous microaggregation, NOT differential privacy"
    budget = release.privacy.budget
    if release.privacy.seeded:
        return "a trial with a declared seed, NOT private"
    return f"{guarantee_words(budget)}, {budget.parameters}, for {budget.protects}"


def _privacy_words(release: AnyRelease) -> tuple[str, ...]:
    private = not isinstance(release, AnonymousRelease) and not release.privacy.seeded
    return ("differential privacy",) if private else ()


def _counted(release: AnyRelease) -> str:
    """How many records the confidential table has, which is public."""
    if isinstance(release, AnonymousRelease):
        return f"{release.n} rows"
    return f"{release.privacy.n} {release.privacy.budget.counted}"


def _media_type(table: str) -> str:
    return "application/vnd.apache.parquet" if table.endswith("parquet") else "text/csv"
