"""The meaning of columns: a public schema, the one encoder, and where tables come from."""
