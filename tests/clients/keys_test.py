#!/usr/bin/env python3
"""The SDK's exceptions for what the server as a whole refuses: keys, a full queue.

    keys_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import pathlib
import tempfile
import unittest

import openai
from client_case import OPTIONS, main
from served_model import MODEL, ServedModel


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        keys = pathlib.Path(folder.name) / "keys"
        keys.write_text("sk-first\nsk-second\n", encoding="ascii")
        keys.chmod(0o600)
        cls.server = ServedModel(OPTIONS.bin / "trtmc", OPTIONS.bundle, "--api-key-file", keys)
        cls.addClassCleanup(cls.server.stop)

    def models(self, key):
        with openai.OpenAI(base_url=self.server.url + "/v1", api_key=key, max_retries=0) as client:
            return [model.id for model in client.models.list()]

    def test_a_good_key_lets_in(self):
        self.assertEqual(self.models("sk-first"), [MODEL])
        self.assertEqual(self.models("sk-second"), [MODEL])

    def test_another_key_does_not(self):
        for key in ("sk-firs", "sk-first2", "sk-firsT", "x"):
            with self.subTest(key), self.assertRaises(openai.AuthenticationError) as caught:
                self.models(key)
            self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_health_needs_none(self):
        self.assertEqual(self.server.request("GET", "/health/live")[0], 200)


if __name__ == "__main__":
    main(__doc__)
