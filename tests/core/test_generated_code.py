"""The committed protobuf code is what proto/ generates."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _generated(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*_pb2*.py*")
        if "__pycache__" not in path.parts
    }


def test_committed_code_is_what_proto_generates(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("regenerate", ROOT / "proto/regenerate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.regenerate(tmp_path)

    fresh = _generated(tmp_path)
    assert fresh
    assert _generated(ROOT / "core") == fresh, "run: make protos"
