"""One view of a job, for documents, commands, lists and pages."""
