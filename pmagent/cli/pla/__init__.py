"""``pmagent pla``: a machine's keyboard and mouse, under approval (docs/design.md §16)."""
