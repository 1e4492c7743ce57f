"""The actors, the sans-I/O engine that runs them, and the anyio runtime at the edge (docs/design.md §3)."""
