"""Orchestra: a request becomes a plan, a plan becomes tasks, tasks run in an order, each behind a wall
(docs/design.md §14)."""
