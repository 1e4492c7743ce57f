"""The HID link: arms, has typed what was approved, and finds out what became of it (docs/design.md §16.4, §16.6)."""
