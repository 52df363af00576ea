#!/usr/bin/env python3
"""The installed tree, from outside.

    install_test.py --build DIR --source DIR --bundle FILE [unittest's own arguments]
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()
DATE = "2026-01-01"  # Of the goldens.


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=280,
                          **more)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def version():
    """"0.1.0", of the header."""
    header = (OPTIONS.source / "include/trtmc/version.h").read_text(encoding="utf-8")
    return re.search(r'VERSION_STRING "(\d+\.\d+\.\d+)"', header)[1]


def interface_version():
    return version().rpartition(".")[0]


def writes_of(*command, **more):
    """What a program writes to its standard output, each write() apart."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, subprocess.Popen([str(part) for part in command], stdout=its, **more) as process:
        its.close()
        writes = list(iter(lambda: ours.recv(1 << 16), b""))
    if process.returncode != 0:
        raise AssertionError(f"{command} ended with {process.returncode}")
    return writes


def golden(**wanted):
    reference = OPTIONS.source / "tests/golden/smollm3-tiny/reference.json"
    for prompt in json.loads(reference.read_text(encoding="utf-8"))["prompts"]:
        if all(prompt.get(key) == value for key, value in wanted.items()):
            return prompt
    raise KeyError(wanted)


class Installed(unittest.TestCase):
    """Installed once, then moved: nothing may remember where it was."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        run("cmake", "--install", OPTIONS.build, "--prefix", folder / "first", "--strip")
        cls.prefix = folder / "moved here"
        (folder / "first").rename(cls.prefix)
        cls.lib = next(cls.prefix.glob("lib*/**/libtrtmc.so")).parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class Tree(Installed):
    def test_the_moved_program_answers(self):
        prompt = golden(kind="chat", user="What is the capital of France?")
        answer = run(self.prefix / "bin/trtmc", "run", OPTIONS.bundle, "--no-think", "--temperature", "0", "--date",
                     DATE, prompt["user"])
        self.assertEqual(answer, prompt["float32"]["greedy_text"].removesuffix("<|im_end|>") + "\n")

    def test_holds_what_belongs_there(self):
        for name in ("include/trtmc/trtmc.h", "include/trtmc/trtmc_c.h", "include/trtmc/values.h",
                     "include/trtmc/version.h", "share/man/man1/trtmc.1", "share/bash-completion/completions/trtmc",
                     "share/zsh/site-functions/_trtmc", "share/fish/vendor_completions.d/trtmc.fish",
                     "share/doc/trtmc/LICENSE", "share/doc/trtmc/THIRD_PARTY.md", "share/doc/trtmc/library.md",
                     "share/doc/trtmc/examples/answer.cc"):
            self.assertTrue((self.prefix / name).is_file(), name)
        self.assertTrue((self.lib / "pkgconfig/trtmc.pc").is_file())
        self.assertTrue((self.lib / "cmake/trtmc/trtmcConfig.cmake").is_file())

    def test_names_no_folder_of_the_build(self):
        for file in self.prefix.rglob("*"):
            if file.is_file() and file.suffix in {".pc", ".cmake", ".1", ".fish", ""} and file.stat().st_size < 1 << 20:
                text = file.read_bytes()
                for folder in (str(OPTIONS.build), str(OPTIONS.source), str(self.prefix.parent)):
                    self.assertNotIn(folder.encode(), text, file)

    def test_the_library_names_itself_by_its_interface(self):
        dynamic = run("readelf", "-d", self.lib / "libtrtmc.so")
        self.assertIn(f"Library soname: [libtrtmc.so.{interface_version()}]", dynamic)
        self.assertNotIn("RPATH", dynamic)
        self.assertNotIn("RUNPATH", dynamic)


class ExampleCase(Installed):
    """Builds examples of the installed tree, and checks what they say."""

    def by_cmake(self, *targets):
        build = self.prefix.parent / "by_cmake"
        run("cmake", "-S", self.prefix / "share/doc/trtmc/examples", "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build, "--target", *targets)
        return build

    def by_pkg_config(self, compiler, source):
        build = self.prefix.parent / "by_pkg_config"
        build.mkdir(exist_ok=True)
        env = {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        path = self.prefix / "share/doc/trtmc/examples" / source
        # As docs/library.md has it: the shell would take a blank in a path apart.
        run("sh", "-c", f'eval {compiler} "\'{path}\'" $(pkg-config --cflags --libs trtmc) -o {path.stem}', env=env,
            cwd=build)
        return build / path.stem

    def check_continue(self, program, **more):
        text = golden(kind="raw", text="One day, Luna the fox walked to the river and")
        tokens = str(len(text["float32"]["greedy_ids"]))
        self.assertEqual(run(program, OPTIONS.bundle, text["text"], tokens, **more), text["float32"]["greedy_text"])

    def check_answer(self, program, **more):
        streamed = writes_of(program, OPTIONS.bundle, "What is the capital of France?", **more)
        self.assertEqual(b"".join(streamed).decode(), "The capital of France is Paris.\n")
        self.assertGreater(len(streamed), 5)


class Examples(ExampleCase):
    def test_find_package(self):
        build = self.by_cmake("answer", "continue")
        self.check_answer(build / "answer")
        self.check_continue(build / "continue")

    def test_pkg_config(self):
        self.check_continue(self.by_pkg_config("cc -std=c11", "continue.c"),
                            env={**os.environ, "LD_LIBRARY_PATH": str(self.lib)})


class MoreExamples(ExampleCase):
    def test_tools_and_all_others_build(self):
        weather = golden(kind="chat", user="What is the weather in Paris?")
        call = json.loads(re.search("<tool_call>(.*)</tool_call>", weather["float32"]["greedy_text"], re.S)[1])
        lines = run(self.by_cmake("all") / "tools", OPTIONS.bundle, weather["user"], DATE).splitlines()
        name, arguments = lines[0].strip("[]").split(" ", 1)
        self.assertEqual({"name": name, "arguments": json.loads(arguments)}, call)
        self.assertGreater(len(lines), 1)

    def test_pkg_config_of_cpp(self):
        self.check_answer(self.by_pkg_config("c++ -std=c++20", "answer.cc"),
                          env={**os.environ, "LD_LIBRARY_PATH": str(self.lib)})

    def test_a_project_in_c_alone(self):
        source = self.prefix.parent / "c_alone"
        source.mkdir()
        shutil.copy(self.prefix / "share/doc/trtmc/examples/continue.c", source)
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(c_alone LANGUAGES C)\n"
            f"find_package(trtmc {interface_version()} REQUIRED)\n"
            "add_executable(continue continue.c)\ntarget_link_libraries(continue PRIVATE trtmc::trtmc)\n",
            encoding="utf-8")
        run("cmake", "-S", source, "-B", source / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", source / "build")
        self.check_continue(source / "build/continue")


class Packages(unittest.TestCase):
    def check(self, prefix):
        """The program answers, and a program that is built on the library does."""
        self.assertIn(f"trtmc      {version()}", run(prefix / "bin/trtmc", "version"))
        expected = "The capital of France is Paris.\n"
        question = "What is the capital of France?"
        self.assertEqual(run(prefix / "bin/trtmc", "run", OPTIONS.bundle, "--no-think", "--temperature", "0",
                             question), expected)
        library = next(prefix.glob("lib*/**/libtrtmc.so")).parent
        run("c++", "-std=c++20", prefix / "share/doc/trtmc/examples/answer.cc", f"-I{prefix}/include", f"-L{library}",
            "-ltrtmc", "-o", prefix / "answer")
        self.assertEqual(run(prefix / "answer", OPTIONS.bundle, question,
                             env={**os.environ, "LD_LIBRARY_PATH": str(library)}), expected)

    def test_debs_and_tarball(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            run("cpack", "--config", OPTIONS.build / "CPackConfig.cmake", "-G", "DEB;TGZ", "-B", folder)
            debs = {deb.name.split("_")[0]: deb for deb in folder.glob("*.deb")}
            self.assertEqual(len(debs), 3)
            depends = run("dpkg-deb", "-f", debs["trtmc"], "Depends")
            for library in ("libc6", "libstdc++6", "libssl3", "libfmt9"):
                self.assertIn(library, depends)
            self.assertIn(f"libtrtmc{interface_version()} (= {version()})",
                          run("dpkg-deb", "-f", debs["libtrtmc-dev"], "Depends"))
            for deb in debs.values():
                run("dpkg-deb", "-x", deb, folder / "deb")
            self.check(folder / "deb/usr")
            tarball = next(folder.glob("*.tar.gz"))
            self.assertIn(platform.machine(), tarball.name)
            shutil.unpack_archive(tarball, folder / "tar")
            self.check(next((folder / "tar").iterdir()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("build", "source", "bundle"):
        parser.add_argument(f"--{option}", required=True, type=pathlib.Path)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
