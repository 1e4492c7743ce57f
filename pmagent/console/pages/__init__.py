"""The console's pages, and how they are drawn."""
