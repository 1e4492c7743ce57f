"""A world of several daemons, workers and a replicated database: who may act, and what comes of attempts elsewhere.

The real leases, claims and scheduler of effects run in it; the database, the network, hosts and boxes are models."""
