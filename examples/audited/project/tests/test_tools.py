"""Tools that reach the outside refuse what they must."""

import pytest

from depcheck.tools import CloneFailed, clone


@pytest.mark.parametrize("url", ["ext::sh -c id", "--upload-pack=x", "http://a/b", "https://a/b;id"])
def test_only_plain_https_urls_are_cloned(url, tmp_path):
    with pytest.raises(CloneFailed, match="only https"):
        clone(url, str(tmp_path))
