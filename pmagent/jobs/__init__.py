"""What runs and audits have in common: asking for one, following it to its end, finding it in the log (a job is one of
them)."""
