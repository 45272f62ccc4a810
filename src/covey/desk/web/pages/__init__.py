"""The app's pages: Table → Columns → Rules → Privacy → Review → Release → Bundle, one address for each step."""

from covey.desk.web.pages import bundle, columns, home, privacy, review, rules, table

ROUTERS = tuple(step.router for step in (home, table, columns, rules, privacy, review, bundle))
