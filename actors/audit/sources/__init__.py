"""Reading what is audited, each in a process of its own: a repository and a PDF."""
