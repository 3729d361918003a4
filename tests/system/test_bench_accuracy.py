"""`tallyveil bench accuracy` prints its tables; what must hold of the figures is tested where they are made.

Not here: those assertions (`tests/core/test_accuracy.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [str(Path(sys.executable).with_name("tallyveil")), "bench", "accuracy", "--repeats", "2", "--cells", "1"]


def printed(*flags: str) -> str:
    return subprocess.run([*COMMAND, *flags], capture_output=True, text=True, timeout=240, check=True).stdout


def test_accuracy_is_printed_for_machines() -> None:
    found: dict[str, list[dict[str, Any]]] = json.loads(printed("--json"))["accuracy"]
    assert set(found) == {"raw_columns", "seed_biases", "coverages", "norm_sub"}
    assert all(row["variance_ratio"] > 0 and row["repeats"] == 2 for row in found["raw_columns"])
    assert {row["mechanism"] for row in found["seed_biases"]} == {"cms", "hcms"}
    assert {row["kind"] for row in found["coverages"]} == {"cells", "ranges", "means"}


def test_accuracy_is_printed_for_people() -> None:
    text = printed()
    assert all(title in text for title in ("Raw columns over 2 repeats", "one fixed hash seed", "95 % intervals"))
    assert "norm-sub beside the raw column: oue, Zipf(1.1), K=1024, n=20,000, epsilon 1" in text
