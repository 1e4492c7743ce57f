"""The OA's front door for other programs: tools and guards, all read-only (spec, OA Tools Interface)."""
