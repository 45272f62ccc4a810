"""SDGym with covey as a custom synthesizer, beside what SDGym brings: the child of gym.py, in SDGym's own environment.

    python run_sdgym.py FOLDER OUT SYNTHESIZER ...

FOLDER/single_table/NAME holds data.zip and metadata.json, as SDGym wants its tables. Writes SDGym's own table of results to OUT.
SYNTHESIZER is a name that SDGym knows, "covey", "covey, a row added or removed", or a name of SDGym's, a colon and epochs.
"""

import os
import sys
import warnings

import pandas as pd
import sdgym

import covey
from benchmarks.numeric.real import NUMBERS, ORDERED
from covey.tables.schema import Field, Schema

EPSILON, DELTA = 1.0, 1e-9
NEIGHBOURS = {"covey": "replace-one", "covey, a row added or removed": "add-or-remove-one"}


def schema(data):
    """Limits of numbers as elsewhere in these benchmarks, and the categories there are."""
    limits = next(own for own in NUMBERS.values() if set(own) <= set(data))
    fields = []
    for name in data:
        if name in limits:
            low, high, step = (*limits[name], 1.0)[:3]
            decimals = {1.0: 0, 0.1: 1, 0.05: 2}[step]
            fields.append(Field(name, "number", low, high, required=True, decimals=decimals))
        else:
            values = sorted(set(data[name].astype(str)), key=lambda x: (len(x), x) if x.isdigit() else (0, x))
            fields.append(Field(name, "string", enum=tuple(values), required=True, ordered=name in ORDERED))
    return Schema(tuple(fields))


def entry(name):
    """covey as SDGym wants it."""

    def train(data, metadata):
        told = schema(data)
        words = {field.name: str for field in told.fields if field.enum}  # SDGym reads categories 0 and 1 as numbers
        synth = covey.PrivateSynthesizer(EPSILON, DELTA, schema=told, neighbours=NEIGHBOURS[name])
        return synth.fit(data.astype(words)), data.dtypes

    def sample(trained, rows):
        synth, kinds = trained
        return pd.DataFrame(synth.sample(rows))[list(kinds.index)].astype(kinds.to_dict())

    return sdgym.create_single_table_synthesizer(name, train, sample)


def main():
    folder, out, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    known, custom = [], []
    for name in names:
        start, _, epochs = name.partition(":")
        if start in NEIGHBOURS:
            custom.append(entry(start))
        elif epochs:
            told = {"epochs": int(epochs), "enable_gpu": False, "verbose": False}
            custom.append(sdgym.create_synthesizer_variant(name, start, told))
        else:
            known.append(start)
    os.chdir(os.path.join(folder, "single_table"))  # SDGym 0.15.1 looks for a table of one's own below itself, or here
    scores = sdgym.benchmark_single_table(
        synthesizers=known,
        custom_synthesizers=custom,
        sdv_datasets=None,
        additional_datasets_folder=folder,
        compute_privacy_score=False,
    )
    scores.to_csv(out, index=False)


if __name__ == "__main__":
    main()
