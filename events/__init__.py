"""The log: what an event is, and how events become durable, ordered, checksummed lines (docs/design.md §2).

Ways in: ``events.log.Log`` (one writer, group commit), ``events.reader`` (readers in any process),
``events.verify`` (every check that can be made). The package knows nothing of what events mean.
"""
