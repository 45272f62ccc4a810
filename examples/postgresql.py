"""From a table in PostgreSQL to a bundle that can be handed out, in Python.

    python examples/postgresql.py postgresql://steward@localhost/clinic visits

The first run drafts schema.json from the table. Check it, say `covey confirm schema.json --all`, open the budget with
`covey ledger open visits --budget 3`, and run it again. The password is read from PGPASSWORD or ~/.pgpass; the database is only
read, in one snapshot. `sqlite:///clinic.db` works just as well.
"""

import argparse
from pathlib import Path

import covey
from covey import write_bundle
from covey.ledger import Ledger, default_ledger_path


def main() -> None:
    """Draft a schema, or make a release once there is one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("table")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--schema", type=Path, default=Path("schema.json"))
    parser.add_argument("--out", type=Path, default=Path("release"))
    given = parser.parse_args()

    source = covey.Database(given.url, table=given.table)
    if not given.schema.exists():
        covey.Schema.draft(source).save(given.schema)
        print(
            f"draft → {given.schema}. Check it, then: covey confirm {given.schema} --all, and by name what carries a warning"
        )
        return

    synth = covey.PrivateSynthesizer(given.epsilon, schema=covey.Schema.load(given.schema))
    prepared = synth.prepare(source)  # may fail on the table; nothing is charged yet
    synth.check(prepared.n)
    Ledger(default_ledger_path()).charge(given.table, synth.epsilon, synth.delta, "release")
    synth.fit(prepared)  # spends the budget
    print(f"bundle → {write_bundle(synth.release(synth.n), given.out)}")
    print(synth.certificate)


if __name__ == "__main__":
    main()
