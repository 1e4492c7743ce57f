"""Run folders: what a run of Orchestra leaves for people and programs, computed from its events (docs/design.md §7)."""
