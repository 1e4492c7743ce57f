"""The orchestrator assistant (OA): snapshots, sessions, permits and escalations (docs/design.md §12)."""
