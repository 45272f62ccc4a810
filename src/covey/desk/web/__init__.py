"""The local app: a steward's way from a table to a bundle, in a browser, on this machine alone."""
