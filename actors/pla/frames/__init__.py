"""Frames: what stands on the screen of the machine that is typed on; the performer is ``taking.FRAME_PERFORMERS``."""
