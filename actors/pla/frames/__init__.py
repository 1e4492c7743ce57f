"""Frames: pictures of the controlled machine's screen; the performer is ``performer.FRAME_PERFORMERS``."""
