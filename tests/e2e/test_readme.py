"""What the README shows can be done as it stands there."""

import os
import re
import subprocess
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import sample_logs
import yaml
from sample_logs import HOUR

from transom.stream import parse

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_stream_file_is_one() -> None:
    stream = parse(yaml.safe_load(block("yaml")))
    assert list(stream.aggregate) == ["traffic", "errors"]


def test_the_picture_is_the_dag() -> None:
    from declared import streams
    from stream_dag import build

    chain = re.findall(r"\w+", block("mermaid").splitlines()[1])
    for file, stream in streams()[0].items():
        dag = build(stream, file)
        edges = {(task.task_id, after) for task in dag.tasks for after in task.downstream_task_ids}
        assert edges == set(pairwise(chain))


def test_the_jobs_run_without_airflow_as_shown(tmp_path: Path) -> None:
    text = block("sh").replace(".transom/try", str(tmp_path)).replace("$PWD/", "")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "+00:00" in line]
    assert len(lines) == 5, done.stdout
    _, day, time, client, count, _ = lines[0]
    end = datetime.fromisoformat(f"{day}T{time}")
    assert sample_logs.requests(sample_logs.apache(), end - 24 * HOUR, end)[client] == int(count)


def test_make_lists_every_target_that_the_readme_names() -> None:
    shown = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"^    make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert [name for name in named if not re.search(rf"^{name}\s", shown, re.MULTILINE)] == []
