"""Fields as a schema file has them, each in one line."""


def entry(name, kind, low=None, high=None, enum=None, required=None, **own):
    """A field with its limits or categories, and what covey alone knows of it."""
    limits = {"minimum": low, "maximum": high, "enum": enum, "required": required}
    parts = {"constraints": {word: value for word, value in limits.items() if value is not None}, "covey": own}
    return {"name": name, "type": kind, **{word: value for word, value in parts.items() if value}}
