"""The app's pages: Table → Columns → Rules → Privacy → Review → Release → Bundle, one file and one address for each step."""

from covey.web.pages import bundle, columns, evaluation, history, home, privacy, release, review, rules, table

ROUTERS = tuple(
    step.router for step in (home, table, columns, rules, privacy, review, release, bundle, evaluation, history)
)
