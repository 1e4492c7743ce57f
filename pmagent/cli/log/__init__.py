"""``pmagent log``: reads the log's files directly, so it needs no daemon and disturbs none."""
