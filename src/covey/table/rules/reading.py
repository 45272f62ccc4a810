"""Rules of a file, by their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from covey.errors import ParameterError
from covey.table.domain import Rule, shown_rule
from covey.table.fields import Field
from covey.table.rules.body import BodyRule
from covey.table.rules.exclusions import Forbid, Requires
from covey.table.rules.flags import AtMost
from covey.table.rules.sums import LessEqual, Linear

# Each reads what stands under its word; KeyError, TypeError, AttributeError and ValueError where that is incomplete.
KINDS: dict[str, Callable[[Any, Mapping[str, Field]], Rule]] = {
    kind.word: kind.read for kind in (AtMost, LessEqual, Linear, BodyRule, Forbid, Requires)
}
_WORDS = f"{', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}"


def read_rule(rule: Any, fields: Mapping[str, Field]) -> Rule:
    """A rule as it stands in a file."""
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise ParameterError(f"a rule is an object with one key, {_WORDS}, got {rule!r}.")
    [(word, body)] = rule.items()
    if word not in KINDS:
        raise ParameterError(f"there is no rule {word!r}. Use {_WORDS}.")
    try:
        return KINDS[word](body, fields)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"rule {rule!r} is incomplete or has a wrong type: {error!r}.") from None


def check_rule(rule: Rule, known_fields: Mapping[str, Field]) -> None:
    """Refuse a rule that does not fit the fields it names."""
    fields = [known_fields[name] for name in rule.fields]
    if len({field.name for field in fields}) < len(fields) or not fields:
        raise ParameterError(f"rule {shown_rule(rule)} must name at least one field, and each once.")
    for field in fields:
        if not field.measured:
            what = "constant" if field.derived is None else "derived from others"
            raise field.wrong(f"is {what} and stands in rule {shown_rule(rule)}", "Leave it out of the rule.")
    wanted = rule.check(known_fields)
    for field in fields:
        if field.type not in wanted:
            raise field.wrong(
                f"has type {field.type} in rule {shown_rule(rule)}", f"It needs type {' or '.join(wanted)}."
            )
