from reviewbot.diff import parse
from reviewbot.review import Comment, Review, placed, verdict

DIFF = """diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1,3 +1,4 @@
 import os
-a = 1
+a = 2
+b = 3
 c = 4
"""


def test_added_lines():
    (change,) = parse(DIFF)
    assert change.path == "x.py"
    assert change.added == {2: "a = 2", 3: "b = 3"}


def test_comments_must_hit_the_change():
    review = Review(summary="", comments=[Comment(path="x.py", line=3, severity=1, text="t"),
                                          Comment(path="x.py", line=9, severity=3, text="t")])
    hit, missed = placed(review, parse(DIFF))
    assert [c.line for c in hit] == [3]
    assert len(missed) == 1
    assert verdict(hit) == "approved with remarks"
