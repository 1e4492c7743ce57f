"""The audit's front door for other programs."""
