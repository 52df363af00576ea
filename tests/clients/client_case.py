"""A test with a server that runs the embedded model; every class has a server of its own."""
import argparse
import pathlib
import sys
import unittest

from served_model import ServedModel, await_that, work_left

OPTIONS = argparse.Namespace()


class Case(unittest.TestCase):
    options = ()  # Of `trtmc serve`.

    @classmethod
    def setUpClass(cls):
        cls.server = ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def await_no_work(self):
        """Waits until nothing is left of what was asked: in queue, in computation, in memory."""
        left = {}

        def is_idle():
            left.clear()
            left.update(work_left(self.server))
            return not left

        self.assertTrue(await_that(is_idle), f"still there: {left}")


def main(description):
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    for name in ("bin", "bundle"):
        setattr(OPTIONS, name, getattr(options, name).absolute())
    unittest.main(argv=[sys.argv[0], *rest])
