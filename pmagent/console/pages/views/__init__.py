"""The pages: each module has its ``routes``."""
