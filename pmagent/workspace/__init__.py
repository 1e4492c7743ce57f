"""A workspace of one's own: ``pmagent init`` and ``pmagent kernel refresh``, which alone write surfaces."""
