"""A session on a device to try things with: what ``pmagent pla demo`` plays, with real commands, a real daemon, and the
firmware's core behind a real pseudo terminal. Nothing is typed on any machine."""
