"""Orchestra: tasks of a run as processes of their own, behind a wall."""
