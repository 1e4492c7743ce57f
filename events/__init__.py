"""The log: what an event is, and how events become durable, ordered, checksummed lines (docs/design.md §2).

Ways in: ``pmagent.events.log.Log`` (one writer, group commit), ``pmagent.events.reader`` (readers in any process),
``pmagent.events.verify`` (every check that can be made). The package knows nothing of what events mean.
"""
