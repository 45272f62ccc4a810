"""From centres to rows."""
