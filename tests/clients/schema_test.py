#!/usr/bin/env python3
"""PyPI's `schemathesis` against the server and what its /openapi.json says of it: no server error, no answer that the
document does not have.

    schema_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from client_case import Case, main

SEED = 20261130
EXAMPLES = 20  # Drawn for each operation, beside those that try every keyword of the document.
TIMEOUT_S = 150
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "unsupported_method", "allow_header_conformance")


class Schema(Case):
    # Most answers that it asks for are long, and none of its business.
    options = ("--context", "128", "--log-format", "none")

    def test_it_describes_itself(self):
        status, headers, text = self.server.request("GET", "/openapi.json")
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        paths = json.loads(text)["paths"]
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/detokenize", "/metrics", "/health/ready"):
            self.assertIn(path, paths)

    def test_what_comes_is_what_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            # One worker: with more, Python before 3.12 can fail in ast.parse, which hypothesis uses.
            done = subprocess.run(
                [pathlib.Path(sys.executable).with_name("schemathesis"), "run", self.server.url + "/openapi.json",
                 "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--seed", str(SEED), "--max-examples", str(EXAMPLES),
                 "--request-timeout", "30", "--suppress-health-check", "all", "--continue-on-failure", "--no-shrink"],
                cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-20_000:] + done.stderr[-2000:])


if __name__ == "__main__":
    main(__doc__)
