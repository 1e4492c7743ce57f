"""The brain: makes proposals of what operators ask for (docs/design.md §16.10)."""
