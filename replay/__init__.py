"""Replay, what-if, comparison of histories, and simulation: other drivers of the same pure actors (DESIGN §5)."""
