#!/usr/bin/env python3
"""check_layers.py SRC: every #include "folder/..." must respect the layers of ARCHITECTURE.md."""
import pathlib
import re
import sys

ALLOWED = {
    "base": "",
    "tensor": "base",
    "text": "base",
    "checkpoint": "base tensor",
    "model": "base tensor",
    "bundle": "base tensor text model",
    "families": "base tensor text checkpoint model",
    "builder": "base tensor text checkpoint model bundle families",
    "graph": "base tensor model bundle",
    "backends": "base tensor text model bundle graph",
    "engine": "base tensor text model bundle backends",
    "api": "base tensor text model bundle backends engine",
    "server": "base tensor text model bundle backends engine api",
    "verify": "base tensor text model checkpoint bundle families backends engine",
    "measure": "base tensor model bundle backends",
    "hub": "base",
    "cli": "base tensor text checkpoint model bundle families builder backends engine api server verify measure hub graph",
}
# include/trtmc/: its values are everybody's, the interface itself is for those who implement it.
PUBLIC_HEADERS = {"trtmc/values.h": None, "trtmc/version.h": None, "trtmc/trtmc.h": {"api", "server", "cli"},
                  "trtmc/trtmc_c.h": {"api"}}
# The engine and those above it see a backend only through these two headers.
BACKEND_DOORS = {"backends/backend.h", "backends/backend_loader.h"}
# The tensorrt backend speaks to the device as the cuda backend does.
TENSORRT_DOORS = {f"backends/cuda/{name}.h" for name in ("check_cuda", "cuda_device", "cuda_error", "device_buffer")}


def violation(path, include):
    """Why the file at `path` (relative to SRC) may not include `include`, or None."""
    layer, target = path.parts[0], include.split("/")[0]
    if path.parts[:2] == ("backends", "tensorrt") and include in TENSORRT_DOORS:
        return None
    if layer not in ALLOWED:
        return f"{layer}/ is no known folder: add it to ARCHITECTURE.md and tools/check_layers.py"
    if target == "tests" and path.name.endswith("_test.cc"):
        return None  # What tests share lies in tests/support.
    if target == "trtmc":
        users = PUBLIC_HEADERS.get(include, set())
        return f"{layer}/ may not include {include}" if users is not None and layer not in users else None
    if target not in ALLOWED:
        return f"{target}/ is no known folder"
    if target != layer and target not in ALLOWED[layer].split():
        return f"{layer}/ may not include {target}/"
    if target == "backends" and layer != "backends" and include not in BACKEND_DOORS:
        return f"{layer}/ sees backends only through {' and '.join(sorted(BACKEND_DOORS))}"
    if target == layer == "backends" and include.count("/") >= 2:
        inside = path.parts[1] if len(path.parts) > 2 else ""
        if include.split("/")[1] != inside:
            return f"a backend's folder is private: {include}"
    if target == layer == "families" and include.count("/") >= 2 and path.parts[1] != include.split("/")[1]:
        return f"a family's folder is private: {include}"
    return None


def main():
    src, bad = pathlib.Path(sys.argv[1]), 0
    for file in sorted(src.rglob("*")):
        if file.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = re.match(r'\s*#include "([a-z_0-9]+/[^"]+)"', line)
            why = match and violation(file.relative_to(src), match[1])
            if why:
                print(f"{file}:{number}: {why}")
                bad = 1
    sys.exit(bad)


main()
