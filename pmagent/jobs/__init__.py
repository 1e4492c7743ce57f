"""Jobs, the common side of runs and audits: requesting one, following it to its end, finding it in the log."""
