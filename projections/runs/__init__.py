"""Run folders: what a run of Orchestra leaves for people and programs, computed from its events (DESIGN §4)."""
