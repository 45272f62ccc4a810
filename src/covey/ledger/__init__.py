"""The ledger: what was promised for each dataset, and what has been spent of it.

One SQLite file per steward holds datasets under names of their choosing, each with a cap on ε and on δ, for as many rows as the
dataset's first charge says, or for a person with all of theirs. Each dataset is counted in one way, fixed before anything is
answered: ε and δ add up (basic composition), or μ² does (Gaussian composition); see `status`. Charges are rounded up and written
before any noise is drawn. Nothing is ever refunded: a charge whose release was lost stays spent.

The file is a list of events. Each carries the SHA-256 of the hash before it followed by its own canonical JSON, and every
total is recomputed from that list, so that no second number can disagree with it. A small file beside the ledger, the
mark, remembers how many events there were and the last hash. Every read and every charge goes through the whole list and
the mark first: a thousand events take about ten milliseconds.

What is found: damage, an event edited, removed, added or moved, charges past a cap, foreign triggers, a ledger deleted or
replaced by an older copy, a mark deleted or replaced by an older one.

What is not found: ledger and mark copied back together, or both rewritten with fresh hashes by someone who knows how (there
is no secret key); the last event alone removed when the process that wrote it died before it could write the mark; the same
table opened under two names or in two ledgers. The ledger keeps a careful steward honest, it does not bind a dishonest
one. Keep it on a local disk: network file systems may not lock.
"""

from covey.ledger.file import Event
from covey.ledger.ledger import Ledger, default_ledger_path
from covey.ledger.status import Amount, Composition, DatasetStatus, dataset_name

__all__ = ["Amount", "Composition", "DatasetStatus", "Event", "Ledger", "dataset_name", "default_ledger_path"]
