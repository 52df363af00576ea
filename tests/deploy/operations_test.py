#!/usr/bin/env python3
"""What a running server says of itself: metrics whose counts are exact, health, models that are loaded again, and what
docs/serving.md and docs/metrics.md show.

    operations_test.py --trtmc FILE --bundle FILE --source DIR [unittest's own arguments]

Metrics are read by PyPI's prometheus_client where it is there, and always by a reader of the text format's grammar.
"""
import argparse
import http.client
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_S = 60
OPTIONS = argparse.Namespace()

# https://prometheus.io/docs/instrumenting/exposition_formats/
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:{{((?:{LABEL}(?:,{LABEL})*)?)}})? (NaN|[+-]Inf|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)")
COMMENT = re.compile(rf"# (HELP|TYPE) ({NAME}) (.*)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def read_metrics(text):
    """{name: {labels: value}}. Every line is a sample of the family whose help and type stand right before it."""
    if not text.endswith("\n"):
        raise ValueError("no line's end at the end")
    samples, family, kind, seen = {}, None, None, set()
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            if comment[1] == "HELP":
                if comment[2] in seen:
                    raise ValueError(f"two families {comment[2]}")
                family, kind = comment[2], None
                seen.add(family)
            elif comment[2] != family or comment[3] not in SUFFIXES:
                raise ValueError(line)
            else:
                kind = comment[3]
            continue
        sample = SAMPLE.fullmatch(line)
        if not sample or kind is None or sample[1] not in {family + suffix for suffix in SUFFIXES[kind]}:
            raise ValueError(line)
        labels = frozenset(re.findall(LABEL, sample[2] or ""))
        if labels in samples.setdefault(sample[1], {}):
            raise ValueError(f"twice: {line}")
        samples[sample[1]][labels] = float(sample[3])
    return samples


class Server:
    def __init__(self, *arguments):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([OPTIONS.trtmc, "serve", "--port", "0", *arguments], stdout=subprocess.PIPE,
                                        stderr=self.log)
        self.port = int(self.process.stdout.readline().decode().strip().rpartition(":")[2] or 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()
        self.log.close()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, text = self.ask(method, path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return json.loads(text)

    def metrics(self):
        return read_metrics(self.ask("GET", "/metrics")[1])

    def await_metrics(self, holds):
        """The figures once `holds`: an answer's end comes shortly before its step's, and its line in the log."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            metrics = self.metrics()
            if holds(metrics) or time.monotonic() > deadline:
                return metrics
            time.sleep(0.02)

    def await_line(self, text):
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            self.log.seek(0)
            if text in self.log.read().decode():
                return True
            time.sleep(0.02)
        return False


def labels(**named):
    return frozenset(f'{name}="{value}"' for name, value in named.items())


def sum_of(metrics, name):
    return sum(metrics.get(name, {}).values())


COMPLETION = {"prompt": [1411, 1369, 257, 892], "max_tokens": 6, "ignore_eos": True, "temperature": 0}


class Metrics(unittest.TestCase):
    def test_counts_are_exact(self):
        with Server(f"tiny={OPTIONS.bundle}") as server:
            used = {"prompt_tokens": 0, "completion_tokens": 0}
            for n in (1, 2, 3):
                usage = server.json("POST", "/v1/completions", {**COMPLETION, "n": n})["usage"]
                for key in used:
                    used[key] += usage[key]
            self.assertEqual(used["completion_tokens"], 6 * (1 + 2 + 3))
            self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": 7})[0], 400)
            self.assertEqual(server.ask("POST", "/tokenize", {"prompt": "Once"})[0], 200)
            self.assertEqual(server.ask("GET", "/v1/models/other")[0], 404)
            self.assertEqual(server.ask("GET", "/no/such/path")[0], 404)
            model = labels(model="tiny")
            requests = {labels(method=method, route=route, status=status): count for (method, route, status), count in {
                ("POST", "/v1/completions", "200"): 3, ("POST", "/v1/completions", "400"): 1,
                ("POST", "/tokenize", "200"): 1, ("GET", "/v1/models/*", "404"): 1, ("GET", "other", "404"): 1}.items()}
            metrics = server.await_metrics(
                lambda m: m["trtmc_generated_tokens_total"][model] == used["completion_tokens"]
                and m["trtmc_sequences_running"][model] == 0
                and sum_of(m, "trtmc_generation_seconds_count") == 3
                and requests.items() <= m["trtmc_http_requests_total"].items()
                and m["trtmc_http_requests_in_flight"][labels()] == m["trtmc_http_connections"][labels()] == 1)
        self.assertEqual(metrics["trtmc_prompt_tokens_total"][model], used["prompt_tokens"])
        self.assertEqual(metrics["trtmc_generated_tokens_total"][model], used["completion_tokens"])
        self.assertEqual(metrics["trtmc_answers_total"][labels(model="tiny", reason="length")], 6)
        self.assertEqual(metrics["trtmc_time_to_first_token_seconds_count"][model], 3)
        self.assertEqual(metrics["trtmc_inter_token_seconds_count"][model], 6 * 5)
        self.assertEqual(metrics["trtmc_step_sequences_count"][model], metrics["trtmc_steps_total"][model])
        self.assertEqual(metrics["trtmc_requests_queued"][model], 0)
        self.assertEqual(metrics["vllm:num_requests_waiting"][labels(model_name="tiny")], 0)
        for request, count in requests.items():
            self.assertEqual(metrics["trtmc_http_requests_total"].get(request), count, request)
        # The one that asked.
        self.assertEqual(metrics["trtmc_http_requests_in_flight"][labels()], 1)
        self.assertEqual(metrics["trtmc_http_connections"][labels()], 1)

    def test_prometheus_own_parser_reads_the_same(self):
        if importlib.util.find_spec("prometheus_client") is None:
            self.skipTest("there is no Python package prometheus_client")
        from prometheus_client.parser import text_string_to_metric_families
        with Server(f'a"b\\c={OPTIONS.bundle}') as server:
            server.json("POST", "/v1/completions", COMPLETION)
            text = server.ask("GET", "/metrics")[1]
        ours = read_metrics(text)
        theirs = {}
        for family in text_string_to_metric_families(text):
            self.assertIn(family.type, SUFFIXES)
            for sample in family.samples:
                escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in sample.labels.items()}
                theirs.setdefault(sample.name, {})[labels(**escaped)] = sample.value
        self.assertEqual(theirs, ours)

    def test_a_reader_of_the_grammar_finds_what_is_wrong(self):
        sound = '# HELP a b\n# TYPE a gauge\na{c="d"} 1\n'
        self.assertEqual(read_metrics(sound), {"a": {frozenset({'c="d"'}): 1}})
        for wrong in (sound[:-1], sound * 2, sound.replace("gauge", "gouge"), sound.replace('"d"', "d"),
                      sound.replace("a{", "b{"), sound.replace(" 1", " one"), sound + 'a{c="d"} 2\n'):
            with self.assertRaises(ValueError):
                read_metrics(wrong)


class Reload(unittest.TestCase):
    def test_a_new_bundle_is_served_without_an_end(self):
        with tempfile.TemporaryDirectory() as folder:
            bundle = pathlib.Path(folder) / "a.trtmc"
            shutil.copy(OPTIONS.bundle, bundle)
            with Server(f"a={bundle}", f"b={OPTIONS.bundle}") as server:
                before = server.json("POST", "/v1/completions", {**COMPLETION, "model": "a"})["choices"]
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(server.await_line("reloaded: 0 models are new, 2 are as they were, 0 could not be read"))

                shutil.copy(OPTIONS.bundle, bundle.with_suffix(".new"))
                os.replace(bundle.with_suffix(".new"), bundle)
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(server.await_line("reloaded: 1 models are new, 1 are as they were, 0 could not be read"))
                after = server.json("POST", "/v1/completions", {**COMPLETION, "model": "a"})["choices"]
                self.assertEqual(after, before)

                bundle.with_suffix(".new").write_text("no bundle", encoding="utf-8")
                os.replace(bundle.with_suffix(".new"), bundle)
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(server.await_line("reloaded: 0 models are new, 1 are as they were, 1 could not be read"))
                after = server.json("POST", "/v1/completions", {**COMPLETION, "model": "a"})["choices"]
                self.assertEqual(after, before)
                self.assertEqual(server.json("GET", "/health/ready"), {"status": "ready"})


    def test_the_log_says_what_became_of_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.touch(0o600)
            keys.write_text("sk-one\n", encoding="utf-8")
            line = "reloaded: 0 models are new, 1 are as they were, 0 could not be read, keys "
            with Server(f"a={OPTIONS.bundle}", "--api-key-file", keys) as server:
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(server.await_line(line + "read again\n"))
                keys.write_text("", encoding="utf-8")
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(server.await_line(line + "as before\n"))


class Log(unittest.TestCase):
    def test_as_json_every_line_is_an_object(self):
        with tempfile.TemporaryDirectory() as folder:
            for options in ([], ["--log-file", f"{folder}/log"]):
                with Server(f"a={OPTIONS.bundle}", "--log-format", "json", *options) as server:
                    server.json("POST", "/v1/completions", COMPLETION)
                    server.process.terminate()
                    server.process.wait(TIMEOUT_S)
                    server.log.seek(0)
                    text = pathlib.Path(options[1]).read_bytes() if options else server.log.read()
                lines = [json.loads(line) for line in text.decode().splitlines()]
                messages = [line["message"] for line in lines if "message" in line]
                self.assertTrue(any(message.startswith("loading a from ") for message in messages), lines)
                self.assertEqual([line["path"] for line in lines if "path" in line], ["/v1/completions"])
                for line in lines:
                    self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
                    self.assertEqual(line.get("level", "info"), "info")


class Health(unittest.TestCase):
    def test_a_server_is_ready_once_it_says_where_it_is(self):
        with Server(f"tiny={OPTIONS.bundle}") as server:
            for path, status in (("", "ready"), ("/ready", "ready"), ("/live", "live"), ("/startup", "started")):
                self.assertEqual(server.json("GET", "/health" + path), {"status": status})
            document = server.json("GET", "/openapi.json")
            self.assertEqual(document["openapi"], "3.1.0")


class Pages(unittest.TestCase):
    def test_what_serving_md_shows_is_what_happens(self):
        sys.path.append(str(OPTIONS.source / "tests/docs"))
        from examples_test import BLOCK, agree, sessions
        page = (OPTIONS.source / "docs/serving.md").read_text(encoding="utf-8")
        shown = [session for block in BLOCK.findall(page) for session in sessions(block)]
        self.assertGreaterEqual(len(shown), 7)
        with Server(f"tiny={OPTIONS.bundle}") as server, tempfile.TemporaryDirectory() as folder:
            for command, output in shown:
                done = subprocess.run(["/bin/bash", "-c", command.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")],
                                      cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
                self.assertTrue(agree(output, (done.stdout + done.stderr).splitlines()),
                                f"{command}\n{done.stdout}{done.stderr}")

    def test_metrics_md_names_every_metric_and_no_other(self):
        page = (OPTIONS.source / "docs/metrics.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `([a-z_:]+)` \| (\w+) \|", page, re.M)
        with Server(f"tiny={OPTIONS.bundle}") as server:
            server.json("POST", "/v1/completions", COMPLETION)
            server.await_metrics(lambda m: "trtmc_http_requests_total" in m)
            text = server.ask("GET", "/metrics")[1]
        self.assertEqual(sorted(rows), sorted(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.M)))


if __name__ == "__main__":
    command_line = argparse.ArgumentParser()
    command_line.add_argument("--trtmc", type=pathlib.Path, required=True)
    command_line.add_argument("--bundle", type=pathlib.Path, required=True)
    command_line.add_argument("--source", type=pathlib.Path, required=True)
    OPTIONS, rest = command_line.parse_known_args()
    unittest.main(argv=[sys.argv[0], "-v", *rest])
