import pytest

from pingboard.config import ConfigError, load


def given(tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


def test_defaults(tmp_path):
    config = load(given(tmp_path, '[[target]]\nname = "a"\nurl = "https://a.example"\n'))
    assert (config.every, config.timeout, config.targets[0].expect) == (60, 10, 200)


@pytest.mark.parametrize(("text", "says"), [
    ("", "no target"), ("[[target]]\nname = 'a'\n", "either url"), ("[[target]]\nname = 'a'\nurl = 'file:///x'\n", "only http"),
    ("every = 1\n[[target]]\nname = 'a'\nhost = 'h'\nport = 1\n", "at least 5"), ("[[target]]\ncolour = 1\n", "target 1"),
    ("x", "c.toml"),
])
def test_faults_are_told(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says):
        load(given(tmp_path, text))
