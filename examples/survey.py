"""A survey with missing values: "no answer" is an answer too, and covey keeps it.

    python examples/survey.py

A field that is not `required` may be empty. covey counts emptiness as one more category, with the same noise as the others, so
that who does not answer stays related to everything else: here people with high incomes answer less often.
"""

import numpy as np
import polars as pl

import covey
from covey import Field, Schema


def survey(n: int, seed: int = 3) -> pl.DataFrame:
    """n fictitious answers. Income is missing more often where it is high, satisfaction at random."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 95, n)
    degree = generator.random(n) < 0.45 - 0.003 * (age - 18)
    income = np.round(np.exp(generator.normal(7.6 + 0.5 * degree, 0.5, n)))
    silent = generator.random(n) < np.where(income > 4000, 0.45, 0.1)
    mood = generator.choice(["unhappy", "content", "happy"], n, p=[0.2, 0.5, 0.3])
    return pl.DataFrame(
        {
            "age": age,
            "degree": degree,
            "income": [None if quiet else float(x) for x, quiet in zip(income, silent, strict=True)],
            "satisfaction": [None if u < 0.05 else m for u, m in zip(generator.random(n), mood, strict=True)],
        }
    )


def main() -> None:
    """From answers with holes to answers with holes."""
    answers = survey(10_000)

    # Ranges and categories come from the questionnaire, not from the answers. Values beyond a range are moved to its end.
    schema = Schema(
        (
            Field("age", "integer", 18, 94, required=True),
            Field("degree", "boolean", required=True),
            Field("income", "number", 0, 12_000),  # not required: may be empty
            Field("satisfaction", "string", enum=("unhappy", "content", "happy")),
        )
    )
    synth = covey.PrivateSynthesizer(epsilon=1.0, delta=1e-9, schema=schema).fit(answers)
    rows = synth.sample(10_000)  # a polars frame, because a polars frame went in

    print(rows.head(5))
    print(synth.certificate)

    # Reads true rows without noise: confidential.
    print("empty cells, and share of no income among people with and without a degree (confidential)")
    for name, table in (("true", answers), ("synthetic", rows)):
        empty = table.null_count().row(0, named=True)
        silent = [table.filter(pl.col("degree") == d)["income"].is_null().mean() for d in (True, False)]
        print(
            f"  {name}: income {empty['income']}, satisfaction {empty['satisfaction']}; {silent[0]:.3f}, {silent[1]:.3f}"
        )


if __name__ == "__main__":
    main()
