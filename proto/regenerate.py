"""Regenerate core/tallyveil/wire/v1 from the .proto files: the one way to run protoc.

Not here: lint and breaking changes, which buf checks with the settings in buf.yaml.

usage: python proto/regenerate.py [OUTPUT_DIR]
"""

# pyright: standard

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent


def regenerate(output: Path) -> None:
    """Write the generated modules under ``output``, mirroring the .proto paths; drop those of gone files."""
    for stale in output.glob("tallyveil/wire/**/*_pb2*.py*"):
        if "__pycache__" not in stale.parts:
            stale.unlink()
    sources = [str(path) for path in sorted(ROOT.rglob("*.proto"))]
    scripts = Path(sys.executable).parent  # the plug-ins beside this Python, activated or not
    arguments = [
        "protoc",
        f"--plugin=protoc-gen-mypy={scripts / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={scripts / 'protoc-gen-mypy_grpc'}",
        f"--proto_path={ROOT}",
        f"--python_out={output}",
        f"--grpc_python_out={output}",
        f"--mypy_out=quiet:{output}",
        f"--mypy_grpc_out=quiet:{output}",
        *sources,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")


if __name__ == "__main__":
    regenerate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "core")
