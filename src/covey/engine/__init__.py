"""From codes to noisy measurements, from these to a law, from the law to rows. Nothing here knows a word of text.

Read `gate`, `model` and `models.tables` in this order; docs/house.md has the picture.
"""
