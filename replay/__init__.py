"""Replay, what-if, history comparison and simulation: other drivers of the same pure actors (DESIGN §5)."""
