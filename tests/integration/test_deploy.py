"""The examples that put workers on hosts: read by the programs that they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from pmagent import workspace
from pmagent.workers.settings import read_settings

FOLDER = Path(__file__).parents[2] / "examples/deploy"


def test_the_script_installs_a_file_that_is_obeyed_and_changes_none_that_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run(["sh", str(FOLDER / "install-worker.sh"), str(tmp_path)], check=True, timeout=60)
        made = read_settings(tmp_path / "etc/pmagent/worker.toml")
        (tmp_path / "etc/pmagent/worker.toml").write_text(
            (tmp_path / "etc/pmagent/worker.toml").read_text().replace('"lab-1"', '"changed"')
        )
    assert made.name == "changed"
    assert (tmp_path / "etc/systemd/system/pmagent-worker.service").is_file()


def test_a_task_of_a_new_workspace_is_not_too_long_for_a_worker_from_here(tmp_path: Path) -> None:
    template = Path(workspace.__file__).with_name("templates") / "orchestra.config.yaml"
    seconds = yaml.safe_load(template.read_text())["policies"]["max_task_duration_sec"]
    assert read_settings(FOLDER / "worker.toml").sizes.seconds >= seconds
    (tmp_path / "worker.toml").write_text('database = "postgresql:///x"\nlogs = ["lab"]\ntools = ["sh"]\n')
    assert read_settings(tmp_path / "worker.toml").sizes.seconds >= seconds


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    text = (FOLDER / "pmagent-worker.service").read_text()
    unit = tmp_path / "pmagent-worker.service"
    unit.write_text(text.replace("/usr/local/bin/pmagent", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "--man=no", "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "pmagent-worker" in line]) == (0, [])


def test_the_manifest_fits_the_schemas_of_the_api_and_its_settings_are_obeyed(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((FOLDER / "workers.yaml").read_text()))
    for document in documents:
        kubernetes_validate.validate(document, "1.30", strict=True)
    settings = tmp_path / "worker.toml"
    settings.write_text(documents[0]["data"]["worker.toml"])
    assert read_settings(settings).logs == ["lab"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**documents[1], "spec": {"replicas": "three"}}, "1.30", strict=True)
    assert "NOT RUN" in (FOLDER / "workers.yaml").read_text().splitlines()[0]
