"""A hospital table of diagnosis flags with "at most L" rules: from rows that must not leave to rows that may.

    python examples/hospital.py

A rule is a public promise about every record ("the form has room for three chronic diseases"). Synthetic rows keep it, and
strict rules lower the noise, because one patient can change less. The table here is fictitious; put your own in its place.
"""

import numpy as np

import covey
from covey import AtMost, Field, Schema
from covey.desk.demo import example_patients

# Each flag belongs to at most one rule.
CHRONIC = (
    "obesity",
    "hypertension",
    "diabetes",
    "dyslipidaemia",
    "coronary_disease",
    "heart_failure",
    "kidney_disease",
)
LUNGS = ("copd", "asthma")


def hospital(n: int) -> dict[str, np.ndarray]:
    """n fictitious patients. Where a patient has more flags than the form has room for, the last ones were not written down."""
    names, flags = example_patients(n)
    for group, most in ((CHRONIC, 3), (LUNGS, 1)):
        at = [names.index(name) for name in group]
        flags[:, at] *= np.cumsum(flags[:, at], axis=1) <= most
    return {name: flags[:, i] for i, name in enumerate(names)}


def main() -> None:
    """From patients to rows that keep the rules."""
    patients = hospital(20_000)

    # What the schema says is public: it must hold whatever the data is. Never read it off the rows.
    schema = Schema(
        fields=tuple(Field(name, "boolean", required=True) for name in patients),
        rules=(AtMost(CHRONIC, 3), AtMost(LUNGS, 1)),
    )

    # fit() spends the budget, once. Afterwards sample() is free, however often you call it.
    synth = covey.PrivateSynthesizer(epsilon=1.0, schema=schema).fit(patients)
    rows = synth.sample(20_000)

    print(synth.privacy)
    print(synth.certificate)  # a private bound on the error: it may be published
    print(
        f"most chronic diseases in a synthetic row: {max(map(sum, zip(*(rows[name] for name in CHRONIC), strict=True)))}"
    )

    # The comparison below reads true rows without noise: for the hospital's own eyes.
    both = {"diabetes", "hypertension"}
    true, made = (np.mean(np.all([np.asarray(t[name]) for name in both], axis=0)) for t in (patients, rows))
    print(f"diabetes and hypertension together: {true:.3f} of true rows, {made:.3f} of synthetic rows (confidential)")


if __name__ == "__main__":
    main()
