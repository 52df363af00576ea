"""A test with a server that runs the embedded model; every class has a server of its own."""
import argparse
import pathlib
import sys
import unittest

from served_model import ServedModel

OPTIONS = argparse.Namespace()


class Case(unittest.TestCase):
    options = ()  # Of `trtmc serve`.

    @classmethod
    def setUpClass(cls):
        cls.server = ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, *cls.options)
        cls.addClassCleanup(cls.server.stop)


def main(description):
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    for name in ("bin", "bundle"):
        setattr(OPTIONS, name, getattr(options, name).absolute())
    unittest.main(argv=[sys.argv[0], *rest])
