"""Simulation: engine, actors and segment store in a world of one thread, one clock and one seed (docs/design.md §9).

``world`` owns time, chance and history; ``disk`` takes back what was not synced; ``machine`` is the daemon's part,
``outside`` everything that a daemon meets; ``invariants`` are checked all the time; ``runner`` runs seeds.
"""
