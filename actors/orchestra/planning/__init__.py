"""From an intent to a plan: its form, its checks, and the planner that proposes it."""
