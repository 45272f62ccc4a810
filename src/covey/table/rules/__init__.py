"""The rules that every row of a table obeys, a class for each kind."""

from covey.table.domain import Condition, Rule, Sum, shown_rule
from covey.table.rules.body import BodyRule
from covey.table.rules.exclusions import Forbid, Requires
from covey.table.rules.flags import AtMost
from covey.table.rules.reading import check_rule, read_rule
from covey.table.rules.sums import LessEqual, Linear

__all__ = [
    "AtMost",
    "BodyRule",
    "Condition",
    "Forbid",
    "LessEqual",
    "Linear",
    "Requires",
    "Rule",
    "Sum",
    "check_rule",
    "read_rule",
    "shown_rule",
]
