"""Bubblewrap, for all that runs behind it: tasks, checks, the planner, and readers of foreign files."""
