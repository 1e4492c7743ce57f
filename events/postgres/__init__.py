"""The log in PostgreSQL: the same lines, as pages in a database that replicates them (docs/design.md §2.9).

Only this package imports psycopg, and only when a log's address is ``postgresql://…``.
"""
