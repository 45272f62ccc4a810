"""A table through google/dpsynth: run by `peer.py` in the peer's own environment, python run_dpsynth.py FOLDER.

FOLDER holds table.csv and facts.json; synthetic.csv is written there. Numbers are cut at 32 private quantiles, dpsynth's
default, and drawn evenly inside; categories are declared; pairs are chosen by MST, its default mechanism. It gets the ρ of
zCDP that covey's own conversion finds for the same ε and δ: its search for one divides by zero with dp-accounting 0.6.0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import dpsynth
import numpy as np
import pandas as pd


def attribute(facts):
    """A column as dpsynth is told of it: public bounds of a number, public values of a category."""
    if facts["number"]:
        return dpsynth.NumericalAttribute(
            facts["low"], facts["high"], clip_to_range=not facts["missing"], interval_handling="sample"
        )
    return dpsynth.CategoricalAttribute(possible_values=[f"v{k}" for k in range(facts["size"])])


def main(folder):
    facts = json.loads((folder / "facts.json").read_text())
    table = pd.read_csv(folder / "table.csv")
    config = dpsynth.TabularConfig(
        domains={name: attribute(column) for name, column in facts["columns"].items()},
        discrete_mechanism=dpsynth.discrete_mechanisms.MSTConfig(),
    )
    found = config.configure(zcdp_rho=facts["rho"])(np.random.default_rng(facts["seed"]), table)
    found.synthetic_data.to_csv(folder / "synthetic.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
