import pytest

from tinyconf import ConfigError, Layers
from tinyconf.layers import flatten
from tinyconf.watch import Watcher


def test_last_wins(monkeypatch):
    monkeypatch.setenv("APP_PORT", "1")
    conf = Layers({"port": 8080}).env("APP_").args(["--port=2"])
    assert conf.get("port", int) == 2
    assert conf.origin("port") == "arguments"


def test_file(tmp_path):
    f = tmp_path / "a.toml"
    f.write_text("[db]\nhost = 'x'\n")
    assert Layers().file(f).get("db.host") == "x"


def test_broken_file(tmp_path):
    f = tmp_path / "a.toml"
    f.write_text("= 3")
    with pytest.raises(ConfigError):
        Layers().file(f)


def test_cast_tells_the_source():
    with pytest.raises(ConfigError, match="port from arguments"):
        Layers().args(["--port=x"]).get("port", int)


def test_flatten():
    assert flatten({"a": {"b": {"c": 1}}}) == {"a.b.c": 1}


def test_watch(tmp_path):
    import os
    f = tmp_path / "a.toml"
    f.write_text("")
    seen = []
    w = Watcher(f, seen.append)
    assert w.poll() is False
    os.utime(f, ns=(1, 1))
    assert w.poll() is True and seen == [f]
