"""Replay, what-if, history comparison and simulation: other drivers of the same pure actors (docs/design.md §8, §9)."""
