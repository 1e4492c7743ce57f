"""Guards: read-only checks of the workspace; each is pure over one reading of the files (rulings A, Guard,
Tools)."""
