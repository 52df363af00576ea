#!/usr/bin/env python3
"""The manual page and the completions say what --help says, the library's page what the examples do.

    descriptions_test.py --trtmc PROGRAM --folder DIR
"""
import argparse
import pathlib
import re
import subprocess
import sys
import unittest

OPTIONS = argparse.Namespace()


def help_of(*command):
    return subprocess.run([OPTIONS.trtmc, *command, "--help"], capture_output=True, text=True, check=True,
                          timeout=30).stdout


def commands():
    return re.findall(r"^  ([a-z]+) {2,}(.*)", help_of().split("Commands:")[1].split("\n\n")[0], re.M)


def rows(command):
    """[(names with value, help)] of a command's --help; help that stands on its own line belongs above."""
    found = re.findall(r"^  (\S.*?)(?: {2,}|\n {30})(\S.*)", help_of(command).split("\n\n", 1)[1], re.M)
    return [(re.sub(r"\s+", " ", names), text) for names, text in found]


def plain(roff):
    """A page of the man macros as its words."""
    text = re.sub(r"\\f[BIPR]", "", roff)
    for escape, character in (("\\-", "-"), ("\\(dq", '"'), ("\\&", ""), ("\\e", "\\")):
        text = text.replace(escape, character)
    return text


class Man(unittest.TestCase):
    def setUp(self):
        self.roff = (OPTIONS.folder / "trtmc.1").read_text(encoding="utf-8")
        self.page = plain(self.roff)

    def section(self, command):
        return re.split(r"^\.S[SH] ", self.page.split(f'.SS "trtmc {command}"\n')[1], maxsplit=1, flags=re.M)[0]

    def test_has_every_row_of_help_in_its_order(self):
        for command, summary in commands():
            self.assertIn(f".TP\n{command}\n{summary}\n", self.page)
            section, at = self.section(command), 0
            for names, text in rows(command):
                name, space, value = names.partition(" ")
                row = f".TP\n{name.replace(',', ', ')}{space}{value}\n{text}\n"
                self.assertIn(row, section[at:], (command, names))
                at = section.index(row, at) + 1
            self.assertEqual(section.count(".TP\n"), len(rows(command)), command)

    def test_has_every_heading_footer_and_exit_status(self):
        for command, _ in commands():
            text = help_of(command)
            for heading in re.findall(r"^(\S.*):$", text, re.M):
                self.assertIn(f".PP\n{heading}:\n", self.section(command))
            first = text.split("\n")[0]
            self.assertTrue(self.section(command).startswith(first), command)
        status = re.sub(r"\s+", " ", help_of().split("Exit status: ")[1]).strip()
        self.assertIn(status, re.sub(r"\s+", " ", self.page))

    def test_groff_takes_it_without_a_warning(self):
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", OPTIONS.folder / "trtmc.1"], capture_output=True,
                              text=True, check=True, timeout=30)
        self.assertEqual(done.stderr, "")


class LibraryPage(unittest.TestCase):
    def test_shows_the_examples_as_they_are(self):
        source = pathlib.Path(__file__).resolve().parents[2]
        page = (source / "docs/library.md").read_text(encoding="utf-8")
        shown = [block for block in re.findall(r"```c(?:pp)?\n(.*?)```", page, re.S) if "int main" in block]
        for name, block in zip(("answer.cc", "ask.c"), shown, strict=True):
            comment, program = (source / "examples" / name).read_text(encoding="utf-8").split("\n", 1)
            self.assertTrue(comment.startswith(("//", "/*")))
            self.assertEqual(program, block)


class Completions(unittest.TestCase):
    def read(self, name):
        return (OPTIONS.folder / name).read_text(encoding="utf-8")

    def complete(self, *words):
        """What bash offers for the last of `words`."""
        script = (f"source '{OPTIONS.folder}/trtmc.bash'; compopt() {{ :; }}; COMP_WORDS=(\"$@\"); "
                  "COMP_CWORD=$(($# - 1)); _trtmc; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True,
                              timeout=30, cwd=OPTIONS.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_offers_commands_options_and_values(self):
        self.assertEqual(self.complete("trtmc", "tok"), ["tokenize"])
        for command, _ in commands():
            names = [name for row, _ in rows(command) for name in re.findall(r"--?[a-z][a-z0-9-]*", row)]
            self.assertEqual(self.complete("trtmc", command, "-"), names, command)
        self.assertEqual(self.complete("trtmc", "run", "x.trtmc", "--kv-type", ""), ["f32", "bf16", "q8", "fp8"])
        self.assertEqual(self.complete("trtmc", "build", "x", "--quant", "q4"), ["q4_q6", "q4"])
        self.assertIn("trtmc.bash", self.complete("trtmc", "run", "trtmc.b"))
        self.assertEqual(self.complete("trtmc", "run", "x.trtmc", "--top-k", ""), [])

    def test_every_shell_knows_every_option(self):
        for command, summary in commands():
            self.assertIn(summary.replace("'", "'\\''"), self.read("_trtmc"))
            fish = [line for line in self.read("trtmc.fish").splitlines() if f"from {command}'" in line]
            for names, _ in rows(command):
                for name in re.findall(r"--([a-z][a-z0-9-]*)", names):
                    self.assertIn(f"--{name}", self.read("_trtmc"))
                    self.assertTrue(any(f" -l {name} " in line for line in fish), (command, name))

    def test_fish_offers_commands_options_and_values(self):
        def complete(line):
            script = f"source '{OPTIONS.folder}/trtmc.fish'; complete -C '{line}'"
            done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True,
                                  timeout=30, cwd=OPTIONS.folder)
            self.assertEqual(done.stderr, "")
            return [row.split("\t")[0] for row in done.stdout.splitlines()]

        self.assertEqual(complete("trtmc tok"), ["tokenize"])
        self.assertEqual(complete("trtmc run x --kv-type "), ["bf16", "f32", "fp8", "q8"])
        self.assertEqual(complete("trtmc run x --temp"), ["--temperature"])

    def test_every_shell_can_read_its_own(self):
        for shell, name in (("bash", "trtmc.bash"), ("zsh", "_trtmc"), ("fish", "trtmc.fish")):
            subprocess.run([shell, "-n", OPTIONS.folder / name], check=True, timeout=30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trtmc", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
