import pytest

from assize.clone import GitFailed, clone


@pytest.mark.parametrize("url", ["--upload-pack=touch x", "https://example.org/a/b", "https://github.com/a/b;ls", "/etc"])
def test_only_known_addresses_are_cloned(url, tmp_path):
    with pytest.raises(GitFailed, match="not an address"):
        clone(url, tmp_path / "repo")
