"""DataSynthesizer in its correlated attribute mode, pure ε: PrivBayes with one parent (two take minutes on 16 flags)."""

import contextlib
import io
import tempfile
from pathlib import Path

PARENTS = 1


def prepare(method):
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    def synthesize(table, domain, rows, epsilon, delta):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path, description = Path(folder) / "table.csv", Path(folder) / "description.json"
            table.to_csv(path, index=False)
            describer = DataDescriber(category_threshold=max(domain.values()) + 1)
            describer.describe_dataset_in_correlated_attribute_mode(
                str(path),
                epsilon=epsilon,
                k=PARENTS,
                attribute_to_datatype=dict.fromkeys(domain, "Integer"),
                attribute_to_is_categorical=dict.fromkeys(domain, True),
                attribute_to_is_candidate_key=dict.fromkeys(domain, False),
            )
            describer.save_dataset_description_to_file(str(description))
            generator = DataGenerator()
            generator.generate_dataset_in_correlated_attribute_mode(rows, str(description))
            return generator.synthetic_dataset[list(domain)].astype(int)

    return synthesize
