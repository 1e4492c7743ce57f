"""Fetches a repository and reads it: git, files, and the process in which code of others is parsed."""
