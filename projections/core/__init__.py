"""Documents as pure functions of a prefix of the log, and how they are kept on disk."""
