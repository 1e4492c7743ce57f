"""Processes that read what strangers made: limited, and behind a wall where there is one."""
