"""Judges that are chat models: what each is told, and how what it says is read; pure."""
