"""Orchestra: a request becomes a plan, a plan becomes tasks, tasks run in an order, each behind a wall (rulings D)."""
