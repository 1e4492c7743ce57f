"""Guards: read-only checks of the workspace; each is pure over one reading of the files (docs/design.md §12.5)."""
