from podsmith.transcript import Cue, cues, parts, stamp

VTT = """WEBVTT

1
00:00:01.000 --> 00:00:04.000
Hello and welcome.

2
00:12:00.500 --> 00:12:02.000
Second topic.
"""


def test_cues(tmp_path):
    (tmp_path / "a.vtt").write_text(VTT)
    assert cues(tmp_path / "a.vtt")[-1] == Cue(720, "Second topic.")


def test_parts():
    cut = parts([Cue(0, "a"), Cue(300, "b"), Cue(601, "c")])
    assert [(one.start, one.number) for one in cut] == [(0, 0), (601, 1)]


def test_stamp():
    assert stamp(3725) == "01:02:05"
