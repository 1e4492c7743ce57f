"""The HID link: arms, has typed what was approved, and finds out what became of it (rulings C)."""
