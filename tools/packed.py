#!/usr/bin/env python3
"""What is big lies packed in the tree: FILE.xz, or FILE.zst, stands for FILE.

    packed.py FILE...      packs each into FILE.xz, which takes its place

What the tests read of it is listed in tests/data/CMakeLists.txt, which unpacks it into the build.
"""
import lzma
import pathlib
import subprocess
import sys

# Each is best for one kind of file: text; numbers in base64, whose bytes repeat their meaning every 16 characters.
PARAMETERS = {"lc": 4, "lp": 0, "pb": 0}, {"lc": 0, "lp": 4, "pb": 4}


def exists(path):
    return any(packed.is_file() for packed in places(path))


def places(path):
    """Where FILE may lie; the name of a packed one stands for itself."""
    return path, path.with_name(path.name + ".xz"), path.with_name(path.name + ".zst")


def read_bytes(path):
    """The content of FILE, wherever it lies. Needs the program `zstd` for FILE.zst."""
    path = next((packed for packed in places(path) if packed.is_file()), path)
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-q", "-d", "-c", path], capture_output=True, check=True).stdout
    return path.read_bytes()


def read_text(path):
    return read_bytes(path).decode()


def write_xz(path, data):
    """FILE.xz: what `xz -9e` makes with the best of the parameters."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, **each} for each in PARAMETERS]
    path.write_bytes(min((lzma.compress(data, filters=[each]) for each in filters), key=len))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for path in map(pathlib.Path, sys.argv[1:]):
        write_xz(path.with_name(path.name + ".xz"), path.read_bytes())
        path.unlink()


if __name__ == "__main__":
    main()
