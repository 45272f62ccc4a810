"""Text to codes and back: a public schema, the one encoder, and where tables come from. Nothing here knows a law of noise."""
