"""The orchestrator assistant (OA): snapshots, sessions, permits and escalations (rulings A)."""
