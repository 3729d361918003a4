"""`tallyveil bench` prints its figures; what they are is nobody's test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

COMMAND = str(Path(sys.executable).with_name("tallyveil"))


@pytest.mark.parametrize(
    ("arguments", "part", "key"),
    [
        (("mechanisms",), "mechanisms", "ratio"),
        (("wire",), "wire", "bytes_per_record"),
        (("agent", "--rows", "20000"), "agent", "agent_peak_mb"),
    ],
)
def test_a_benchmark_prints_its_figures(arguments: tuple[str, ...], part: str, key: str) -> None:
    for flags in ((), ("--json",)):
        done = subprocess.run(
            [COMMAND, "bench", *arguments, *flags], capture_output=True, text=True, timeout=240, check=True
        )
    figures = cast(object, json.loads(done.stdout)[part])
    rows = cast(list[dict[str, float]], figures if isinstance(figures, list) else [figures])
    assert rows and all(row[key] > 0 for row in rows)
