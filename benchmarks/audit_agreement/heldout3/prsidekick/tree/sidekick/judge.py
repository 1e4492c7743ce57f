from .agent import Review


def changed_lines(files):
    """path -> set of line numbers that the pull request adds."""
    changed = {}
    for f in files:
        lines, n = set(), 0
        for row in (f.get("patch") or "").splitlines():
            if row.startswith("@@"):
                n = int(row.split("+")[1].split(",")[0].split(" ")[0]) - 1
            elif not row.startswith("-"):
                n += 1
                if row.startswith("+"):
                    lines.add(n)
        changed[f["filename"]] = lines
    return changed


def filter_comments(review: Review, files):
    changed = changed_lines(files)
    return [c for c in review.comments if c.line in changed.get(c.path, ())]


def event_for(comments):
    if any(c.severity == "blocker" for c in comments):
        return "REQUEST_CHANGES"
    if not comments:
        return "APPROVE"
    return "COMMENT"
