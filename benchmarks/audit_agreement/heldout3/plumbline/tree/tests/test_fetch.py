import subprocess

import pytest

from plumbline import fetch


@pytest.mark.parametrize("url", [
    "git@github.com:a/b", "--upload-pack=touch x", "https://github.com/a/b;rm -rf ~", "file:///etc", "https://evil.example/a/b",
])
def test_odd_addresses_are_refused(url, tmp_path):
    with pytest.raises(fetch.FetchError, match="not an address"):
        fetch.clone(url, tmp_path)


def test_a_slow_git_is_told(monkeypatch):
    def slow(*_, **__):
        raise subprocess.TimeoutExpired("git", 90)

    monkeypatch.setattr(subprocess, "run", slow)
    with pytest.raises(fetch.FetchError, match="longer"):
        fetch.git("clone")


def test_commits_of_a_small_repository(tmp_path):
    fetch.git("init", "-q", str(tmp_path))
    (tmp_path / "a.txt").write_text("1\n2\n")
    fetch.git("add", ".", cwd=tmp_path)
    fetch.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", cwd=tmp_path)
    assert [(subject, added) for _, subject, added in fetch.commits(tmp_path)] == [("first", 2)]
