"""Numbers about mechanisms: budgets and theorems. Nothing here ever sees a row."""
