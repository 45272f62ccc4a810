"""`regain` for persons with events: person-averaged tables, centres of persons and of events, sequences again."""
