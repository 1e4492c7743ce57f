"""The log for pages: read, searched, checked, summarised; never written."""
