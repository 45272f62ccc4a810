"""A hook of mkdocs: three finished reports, made anew with the site, and the page that shows them. The tables are fictitious."""

from __future__ import annotations

import json
import warnings
from datetime import date, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

SHOWN = {
    "patients": (
        "A table of patients",
        "20,000 patients with categories, numbers, dates and missing values, at ε = 1 and δ = 10⁻⁹. Limits and categories were "
        "declared.",
    ),
    "clinic": (
        "Patients and their visits",
        "4,000 patients with up to eight visits each, at ε = 2 and δ = 10⁻⁹. The guarantee protects a patient with all visits.",
    ),
    "small": (
        "Too few rows",
        "The first 300 patients of the same hospital, at ε = 0.5. Most of what you see is noise, and the report says so.",
    ),
}
FRAME = '<iframe src="gallery/{name}.html" title="Report: {title}" loading="lazy" width="100%" height="640"></iframe>'


def page() -> str:
    """Every report with a word on its table."""
    parts = ["# Three finished reports", "", "Each is the `report.html` of a release of a fictitious table.", ""]
    for name, (title, words) in SHOWN.items():
        frame = FRAME.format(name=name, title=title)
        parts += [f"## {title}", "", f"{words} [Open the whole page](gallery/{name}.html).", "", frame, ""]
    return "\n".join(parts)


PACKAGE = {
    "resources": [
        {
            "name": "patients",
            "path": "patients.csv",
            "schema": {
                "primaryKey": "id",
                "fields": [
                    {"name": "id", "type": "string"},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110}},
                    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
                ],
            },
        },
        {
            "name": "visits",
            "path": "visits.csv",
            "covey": {"at_most": 8, "order": "day"},
            "schema": {
                "foreignKeys": [{"fields": "patient", "reference": {"resource": "patients", "fields": "id"}}],
                "fields": [
                    {"name": "patient", "type": "string"},
                    {
                        "name": "day",
                        "type": "date",
                        "constraints": {"minimum": "2024-01-01", "maximum": "2024-12-31", "required": True},
                    },
                    {"name": "ward", "type": "string", "constraints": {"enum": ["medicine", "surgery"]}},
                    {"name": "cost", "type": "integer", "constraints": {"minimum": 0, "maximum": 2000}},
                ],
            },
        },
    ]
}


def clinic() -> dict[str, Any]:
    """Patients and their visits."""
    import polars as pl

    chance, patients, visits = Random(1), [], []
    for k in range(4000):
        age = chance.randrange(100)
        patients.append({"id": f"p{k}", "age": age, "sex": chance.choice("fm")})
        day = date(2024, 1, 1) + timedelta(chance.randrange(240))
        for place in range(min(8, chance.randrange(3 + age // 20))):
            ward = "medicine" if chance.random() < (0.8 if place == 0 else 0.3) else "surgery"
            visits.append({"patient": f"p{k}", "day": day, "ward": ward, "cost": chance.randrange(100, 500 + 4 * age)})
            day += timedelta(chance.randrange(3, 15))
    return {"patients": pl.DataFrame(patients), "visits": pl.DataFrame(visits)}


def reports(folder: Path) -> dict[str, str]:
    """The reports, by name: releases with fresh noise."""
    import polars as pl

    from covey import Schema, write_bundle
    from covey.desk.demo import example_hospital, public_schema
    from covey.synthesizers import PrivateSynthesizer
    from covey.tables.description import Description

    example_hospital(folder / "patients.csv", 20_000)
    frame = pl.read_csv(folder / "patients.csv", infer_schema=False)
    schema = public_schema(Schema.draft(frame))
    (folder / "package.json").write_text(json.dumps(PACKAGE), encoding="utf-8")
    described = Description.load(folder / "package.json")
    made = {
        "patients": PrivateSynthesizer(1.0, 1e-9, schema=schema).fit(frame),
        "clinic": PrivateSynthesizer(2.0, 1e-9, schema=described).fit(clinic()),
        "small": PrivateSynthesizer(0.5, schema=schema).fit(frame.head(300)),
    }
    found = {}
    for name, synth in made.items():
        write_bundle(synth.release(), folder / name)
        found[name] = (folder / name / "report.html").read_text(encoding="utf-8")
    return found


def on_files(files: Any, config: Any) -> Any:
    """Add gallery.md, and the reports beside it."""
    from mkdocs.structure.files import File

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a release is mostly noise is what one of them shows
        made = reports(Path(folder))
    for name, report in made.items():
        files.append(File.generated(config, f"gallery/{name}.html", content=report))
    files.append(File.generated(config, "gallery.md", content=page()))
    return files


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        for one, text in reports(Path(place)).items():
            print(one, len(text))
