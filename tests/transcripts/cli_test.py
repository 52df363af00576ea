#!/usr/bin/env python3
"""The command line against Transformers' recorded results, and against signals, pipes and terminals.

    cli_test.py --bin DIR --bundle FILE --golden reference.json [unittest's own arguments]
"""
import argparse
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TIMEOUT_S = 120
OPTIONS = argparse.Namespace()


def trtmc(*arguments, stdin=b"", **more):
    return subprocess.run([OPTIONS.bin / "trtmc", *arguments], input=stdin, capture_output=True,
                          timeout=TIMEOUT_S, check=False, **more)


def run_json(*arguments, stdin=b""):
    done = trtmc("run", OPTIONS.bundle, "--json", *arguments, stdin=stdin)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)


class Golden(unittest.TestCase):
    """What Transformers gave for the embedded model, float32, greedy."""

    def setUp(self):
        self.golden = json.loads(OPTIONS.golden.read_text(encoding="utf-8"))
        self.stop_ids = set(json.loads(trtmc("inspect", OPTIONS.bundle, "--json").stdout)["stop_ids"])

    def cut(self, ids):
        """Up to the first stop id, which ends an answer and is no part of it, and whether there is one.
        (Transformers went on after <|end_of_text|>.)"""
        for i, token in enumerate(ids):
            if token in self.stop_ids:
                return ids[:i], True
        return ids, False

    def test_raw_prompts_give_transformers_ids(self):
        for prompt in self.golden["prompts"]:
            if prompt["kind"] != "raw":
                continue
            expected, stopped = self.cut(prompt["float32"]["greedy_ids"])
            with self.subTest(prompt["text"]):
                answer = run_json("--raw", "--temperature", "0", "--max-tokens", str(len(expected) + stopped),
                                  prompt["text"])
                self.assertEqual(answer["prompt_ids"], prompt["input_ids"])
                self.check_ids(answer, expected, stopped)

    def test_chat_prompts_give_transformers_prompt_and_ids(self):
        for prompt in self.golden["prompts"]:
            if prompt["kind"] != "chat":
                continue
            expected, stopped = self.cut(prompt["float32"]["greedy_ids"])
            with self.subTest(prompt["user"]), tempfile.TemporaryDirectory() as folder:
                more = ["--think" if prompt["think"] else "--no-think"]
                if prompt["tools"]:
                    tools = pathlib.Path(folder) / "tools.json"
                    tools.write_text(json.dumps(prompt["tools"]), encoding="utf-8")
                    more += ["--tools", tools]
                answer = run_json("--temperature", "0", "--date", "2026-01-01", "--max-tokens",
                                  str(len(expected) + stopped), *more, prompt["user"])
                self.assertEqual(answer["prompt_ids"], prompt["input_ids"])
                self.check_ids(answer, expected, stopped)
                if stopped and not prompt["tools"]:
                    text = prompt["float32"]["greedy_text"].removesuffix("<|im_end|>")
                    if prompt["think"]:
                        reasoning, text = text.removeprefix("<think>").split("</think>")
                        self.assertEqual(answer["reasoning"].strip(), reasoning.strip())
                    self.assertEqual(answer["text"].strip(), text.strip())

    def test_prompt_prints_transformers_bytes(self):
        for prompt in self.golden["prompts"]:
            if prompt["kind"] != "chat":
                continue
            request = {"messages": [{"role": "user", "content": prompt["user"]}],
                       "chat_template_kwargs": {"enable_thinking": prompt["think"]}}
            if prompt["tools"]:
                request["tools"] = prompt["tools"]
            stdin = json.dumps(request).encode()
            with self.subTest(prompt["user"]):
                done = trtmc("prompt", OPTIONS.bundle, "--date", "2026-01-01", stdin=stdin)
                self.assertEqual(done.stdout.decode(), prompt["text"])
                done = trtmc("prompt", OPTIONS.bundle, "--date", "2026-01-01", "--ids", stdin=stdin)
                self.assertEqual(json.loads(done.stdout), prompt["input_ids"])

    def check_ids(self, answer, expected, stopped):
        self.assertEqual(answer["ids"], expected)
        reason = "tool_calls" if answer["tool_calls"] else "stop" if stopped else "length"
        self.assertEqual(answer["finish_reason"], reason)
        self.assertEqual(answer["usage"]["prompt_tokens"], len(answer["prompt_ids"]))
        self.assertEqual(answer["usage"]["completion_tokens"], len(expected))


class Formats(unittest.TestCase):
    """Names and order that scripts rely on."""

    def test_run_json(self):
        answer = run_json("--raw", "--temperature", "0", "--max-tokens", "2", "Hello")
        self.assertEqual(list(answer), ["text", "reasoning", "tool_calls", "prompt_ids", "ids",
                                        "finish_reason", "usage", "timings", "seed"])
        self.assertEqual(list(answer["usage"]), ["prompt_tokens", "completion_tokens", "cached_tokens"])
        self.assertEqual(list(answer["timings"]), ["load_ms", "prefill_ms", "decode_ms", "ttft_ms"])

    def test_logprobs_have_openais_shape(self):
        answer = run_json("--raw", "--temperature", "0", "--max-tokens", "3", "--logprobs", "2", "Hello")
        content = answer["logprobs"]["content"]
        self.assertEqual(len(content), 3)
        for token in content:
            self.assertEqual(list(token), ["token", "logprob", "bytes", "top_logprobs"])
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
            self.assertEqual(len(token["top_logprobs"]), 2)
            # Greedy: the token is the most likely one.
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])
            self.assertLessEqual(token["logprob"], 0)
        self.assertEqual("".join(token["token"] for token in content), answer["text"])

    def test_a_seed_repeats_and_is_reported(self):
        first = run_json("--raw", "--seed", "7", "--temperature", "1", "--max-tokens", "12", "Hello")
        again = run_json("--raw", "--seed", "7", "--temperature", "1", "--max-tokens", "12", "Hello")
        other = run_json("--raw", "--seed", "8", "--temperature", "1", "--max-tokens", "12", "Hello")
        self.assertEqual(first["ids"], again["ids"])
        self.assertNotEqual(first["ids"], other["ids"])
        self.assertEqual(first["seed"], 7)

    def test_score_json(self):
        text = b"The capital of France is Paris."
        score = json.loads(trtmc("score", OPTIONS.bundle, "--json", "--per-token", stdin=text).stdout)
        self.assertEqual(list(score), ["tokens", "logprob_sum", "perplexity", "ids", "token_logprobs"])
        ids = json.loads(trtmc("tokenize", OPTIONS.bundle, stdin=text).stdout)
        self.assertEqual(score["ids"], ids)
        self.assertEqual(score["tokens"], len(ids))
        self.assertIsNone(score["token_logprobs"][0])
        self.assertAlmostEqual(sum(score["token_logprobs"][1:]), score["logprob_sum"], places=9)
        brief = json.loads(trtmc("score", OPTIONS.bundle, "--json", stdin=text).stdout)
        self.assertEqual(list(brief), ["tokens", "logprob_sum", "perplexity"])

    def test_bench_json(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = pathlib.Path(folder) / "speed.svg"
            done = trtmc("bench", OPTIONS.bundle, "--json", "--prefill", "8", "--decode", "2", "--depth", "0,40",
                         "--batch", "1,2", "--repeat", "2", "--threads", "1", "--plot", plot)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("<svg", plot.read_text())
        cases = json.loads(done.stdout)
        self.assertEqual([(c["kind"], c["tokens"], c["batch"], c["depth"]) for c in cases],
                         [(kind, tokens, batch, depth) for kind, tokens in [("prefill", 8), ("decode", 2)]
                          for batch in (1, 2) for depth in (0, 40)])
        for case in cases:
            speed = case["tokens_per_second"]
            self.assertLess(0, speed["min"])
            self.assertLessEqual(speed["min"], speed["median"])
            self.assertLessEqual(speed["median"], speed["max"])
            self.assertLess(0, case["gb_per_second"])
            self.assertLess(0, case["roof_share"])
            self.assertEqual((case["backend"], case["threads"]), ("cpu", 1))
            self.assertRegex(case["logits_hash"], "^[0-9a-f]{16}$")
        self.assertEqual(len({c["logits_hash"] for c in cases}), len(cases))
        again = json.loads(trtmc("bench", OPTIONS.bundle, "--json", "--prefill", "8", "--decode", "0", "--repeat",
                                 "1").stdout)
        self.assertEqual(again[0]["logits_hash"], cases[0]["logits_hash"])  # Threads change no bit.

    def test_bench_refuses_what_cannot_be_measured(self):
        for arguments, message in [(["--prefill", "0", "--decode", "0"], "nothing to measure"),
                                   (["--depth", "4096"], "but the context has 4096"),
                                   (["--prefill", "1,,2"], "--prefill: \"\""),
                                   (["--batch", "0"], "--batch: \"0\", expected a whole number from 1")]:
            done = trtmc("bench", OPTIONS.bundle, *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr.decode())

    def test_bench_refuses_a_plot_in_a_place_that_is_none_before_it_measures(self):
        done = trtmc("bench", OPTIONS.bundle, "--plot", "/dev/full")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertEqual(done.stderr, b"trtmc: /dev/full: not a regular file\n")

    @unittest.skipIf(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 130e9, "there is enough memory for it")
    def test_bench_refuses_more_kv_than_there_is_memory(self):
        done = trtmc("bench", OPTIONS.bundle, "--batch", "4096", "--depth", "4000", "--decode", "1", "--prefill", "0")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b"the largest case needs 516096 KV blocks", done.stderr)

    def test_score_agrees_with_the_logprobs_of_a_greedy_answer(self):
        answer = run_json("--raw", "--temperature", "0", "--max-tokens", "4", "--logprobs", "0",
                          "The capital of")
        text = ("The capital of" + answer["text"]).encode()
        score = json.loads(trtmc("score", OPTIONS.bundle, "--json", "--per-token", stdin=text).stdout)
        self.assertEqual(score["ids"], answer["prompt_ids"] + answer["ids"])
        for scored, token in zip(score["token_logprobs"][-4:], answer["logprobs"]["content"]):
            self.assertAlmostEqual(scored, token["logprob"], delta=1e-4)

    def test_inspect_json(self):
        inspected = json.loads(trtmc("inspect", OPTIONS.bundle, "--json").stdout)
        for name in ("family", "strategy", "source", "layers", "stop_ids", "quantization", "sections",
                     "routes", "backends"):
            self.assertIn(name, inspected)
        self.assertEqual([layer["rope"] for layer in inspected["layers"]],
                         [True, True, True, False, True, True, True, False])

    def test_inspect_json_has_the_routes_and_their_reasons(self):
        routes = json.loads(trtmc("inspect", OPTIONS.bundle, "--json", "--precision", "f32").stdout)["routes"]
        self.assertEqual([(route["name"], route["taken"], route["possible"]) for route in routes],
                         [("native_kv", False, False), ("standard", True, True), ("dual_profile", False, True)])
        for route in routes:
            self.assertEqual([reason["subject"] for reason in route["reasons"]],
                             ["precision", "quantisation", "activation", "biases", "heads", "attention", "rope",
                              "fp32 layers", "capacity", "memory", "TensorRT"])
        self.assertEqual([reason for reason in routes[0]["reasons"] if not reason["for"]],
                         [{"subject": "precision", "for": False,
                           "text": "f32, but fused attention is taken in bf16 only"}])

    def test_every_json_answer_is_one_line(self):
        for arguments in (["version", "--json"], ["inspect", OPTIONS.bundle, "--json"],
                          ["verify", OPTIONS.bundle, "--json"]):
            out = trtmc(*arguments).stdout.decode()
            self.assertEqual(out.count("\n"), 1)
            json.loads(out)

    def test_the_locale_changes_nothing(self):
        arguments = ["run", OPTIONS.bundle, "--raw", "--temperature", "0.5", "--seed", "1", "--max-tokens",
                     "5", "Hello"]
        plain = trtmc(*arguments, env={"LC_ALL": "C"})
        other = trtmc(*arguments, env={"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"})
        self.assertEqual((plain.returncode, plain.stdout), (other.returncode, other.stdout))


class Streams(unittest.TestCase):
    """Full disks, closed pipes, Ctrl-C."""

    def long_answer(self, **more):
        return subprocess.Popen([OPTIONS.bin / "trtmc", "run", OPTIONS.bundle, "--raw", "--seed", "1",
                                 "--temperature", "1", "--logit-bias", "10222:-100",
                                 "Once upon a time"], stderr=subprocess.PIPE, **more)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([OPTIONS.bin / "trtmc", "inspect", OPTIONS.bundle], stdout=full,
                                  stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 6)
        self.assertEqual(done.stderr, b"trtmc: standard output: No space left on device\n")

    def test_a_closed_standard_output_is_an_error_and_no_file_takes_its_place(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" inspect "$1" >&-', OPTIONS.bin / "trtmc",
                               OPTIONS.bundle], stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, b"trtmc: standard output: Bad file descriptor\n")

    def test_a_reader_that_leaves_ends_the_answer_quietly(self):
        process = self.long_answer(stdout=subprocess.PIPE)
        process.stdout.read(1)
        process.stdout.close()
        self.assertEqual(process.wait(TIMEOUT_S), 141)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()

    def test_ctrl_c_ends_run_with_130_and_what_there_is(self):
        process = self.long_answer(stdout=subprocess.PIPE)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(errors, b"")
        self.assertTrue((first + rest).endswith(b"\n"))

    def test_ctrl_c_ends_a_build_with_130_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for delay_s in (0, 0.02, 0.05, 0.1):
                process = subprocess.Popen([OPTIONS.bin / "trtmc", "build", OPTIONS.checkpoint, "-o", "x.trtmc"],
                                           cwd=folder, stderr=subprocess.PIPE)
                if delay_s:
                    process.stderr.readline()  # "reading": the handler stands, the work begins.
                    time.sleep(delay_s)
                    process.send_signal(signal.SIGINT)
                    process.communicate(timeout=TIMEOUT_S)
                    if process.returncode == 0:  # It was quicker.
                        os.remove(os.path.join(folder, "x.trtmc"))
                    else:
                        self.assertEqual(process.returncode, 130)
                else:
                    process.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(process.returncode, 0)
                    os.remove(os.path.join(folder, "x.trtmc"))
                self.assertEqual(os.listdir(folder), [])

    def test_control_bytes_of_an_answer_reach_a_pipe_as_they_are(self):
        done = trtmc("detokenize", OPTIONS.bundle, stdin=trtmc("tokenize", OPTIONS.bundle,
                                                               stdin=b"\x1b[2J").stdout)
        self.assertEqual(done.stdout, b"\x1b[2J")


class Terminal:
    """trtmc on a pseudo-terminal, as a person uses it."""

    def __init__(self, *arguments, home, program=None):
        self.master, slave = pty.openpty()
        self.first_modes = termios.tcgetattr(slave)
        environment = {"HOME": home, "TERM": "xterm", "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen([program or OPTIONS.bin / "trtmc", *arguments], stdin=slave, stdout=slave,
                                        stderr=slave, env=environment, start_new_session=True,
                                        preexec_fn=lambda: os.set_inheritable(slave, True)
                                        or __import__("fcntl").ioctl(slave, 0x540E, 0))  # TIOCSCTTY
        self.slave = slave  # Kept open: its modes are looked at when the program has ended.
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, text, timeout_s=TIMEOUT_S):
        """Everything up to and with `text`."""
        end = time.monotonic() + timeout_s
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            try:
                more = os.read(self.master, 65536) if ready else b""
            except OSError:  # The other end is closed.
                more = b""
            if not more:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            self.seen += more.decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def modes(self):
        return termios.tcgetattr(self.slave)

    def wait(self):
        status = self.process.wait(TIMEOUT_S)
        os.close(self.master)
        os.close(self.slave)
        return status


class Chat(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def chat(self, *more):
        return Terminal("chat", OPTIONS.bundle, "--date", "2026-01-01", *more, home=self.folder.name)

    def test_a_conversation_at_a_terminal(self):
        terminal = self.chat("--temperature", "0", "--no-think")
        terminal.expect("> ")
        terminal.type("What is the capital of France?\r")
        terminal.expect("The capital of France is Paris.")
        terminal.expect("> ")
        terminal.type("/rest\r")
        terminal.expect("did you mean /reset?")
        terminal.expect("> ")
        terminal.type("\x04")
        self.assertEqual(terminal.wait(), 0)
        history = pathlib.Path(self.folder.name, ".local/state/trtmc/chat_history").read_text("utf-8")
        self.assertIn("capital", history)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        terminal = self.chat("--seed", "1", "--temperature", "1", "--logit-bias", "10233:-100",
                             "--logit-bias", "10222:-100", "--no-think")
        terminal.expect("> ")
        terminal.type("Tell me a story about a dog.\r")
        terminal.expect("\r\n")
        time.sleep(1)
        # The second one comes when the answer is ending, or has ended: no reason to end the program.
        terminal.type("\x03\x03")
        terminal.expect("(stopped)")
        terminal.expect("> ")
        terminal.type("/exit\r")
        self.assertEqual(terminal.wait(), 0)

    def test_two_ctrl_c_at_the_prompt_end_it_with_130(self):
        terminal = self.chat()
        terminal.expect("> ")
        terminal.type("half a line\x03")
        terminal.expect("once more")
        terminal.expect("> ")
        terminal.type("\x03")
        self.assertEqual(terminal.wait(), 130)

    def test_ctrl_c_that_was_typed_before_the_question_does_not_answer_it(self):
        terminal = self.chat()
        terminal.expect("> ")
        terminal.type("\x03\x03\x03/exit\r")
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_z_suspends_it_until_fg(self):
        terminal = Terminal("--norc", "--noediting", "-i", home=self.folder.name, program="/bin/bash")
        terminal.type(f"PS1='$ '; '{OPTIONS.bin}/trtmc' chat '{OPTIONS.bundle}'\r")
        terminal.expect("> ")
        terminal.type("half\x1a")
        terminal.expect("Stopped")
        terminal.type("fg\r")
        terminal.expect("> half")
        terminal.type("\x15/exit\r")
        terminal.expect("$ ")
        terminal.type("exit\r")
        self.assertEqual(terminal.wait(), 0)

    def test_a_signal_that_ends_it_restores_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = self.chat()
            terminal.expect("> ")
            self.assertNotEqual(terminal.modes(), terminal.first_modes)
            terminal.process.send_signal(number)
            self.assertEqual(terminal.process.wait(TIMEOUT_S), -number)
            self.assertEqual(terminal.modes(), terminal.first_modes)
            terminal.wait()

    def test_signals_at_the_prompt_do_not_end_the_line(self):
        terminal = self.chat()
        terminal.expect("> ")
        for _ in range(3):
            terminal.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        terminal.type("/exit\r")
        self.assertEqual(terminal.wait(), 0)

    def test_letters_beyond_ascii_are_edited_whole(self):
        terminal = self.chat()
        terminal.expect("> ")
        terminal.type("/é\x7f\x7f/reset\r")
        terminal.expect("the conversation is forgotten")
        terminal.expect("> ")
        terminal.type("\x04")
        self.assertEqual(terminal.wait(), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    parser.add_argument("--golden", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OPTIONS.__dict__.update(vars(options))
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
