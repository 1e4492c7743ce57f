"""``pmagent pla``: a machine's keyboard and mouse, under approval (rulings C)."""
