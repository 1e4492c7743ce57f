"""Orchestra: a request becomes a plan, a plan becomes tasks, tasks run in an order (rulings D)."""
