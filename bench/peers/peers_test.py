#!/usr/bin/env python3
"""Reading and arithmetic of compare_peers: lines recorded from llama.cpp (0c1e570) and trtmc, figures worked out by hand."""
import json
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers import cpu_use, llama_cpp, random_gguf, report, trtmc  # noqa: E402
from peers.samples import Case, Sample, compare  # noqa: E402

RECORDED = pathlib.Path(__file__).with_name("testdata")
PREFILL, DECODE = Case("prefill", 64, 64, 1), Case("decode", 8, 64, 1)


def recorded(name):
    return (RECORDED / name).read_text(encoding="utf-8")


class Reading(unittest.TestCase):
    def test_llama_bench_gives_each_test_its_case(self):
        self.assertEqual(llama_cpp.read_bench(recorded("llama_bench.jsonl")),
                         [Sample(Case("prefill", 32, 64, 1), 12.597553), Sample(PREFILL, 347.364621), Sample(DECODE, 45.231769)])

    def test_llama_batched_bench_gives_the_speed_of_all_sequences(self):
        self.assertEqual(llama_cpp.read_batched_bench(recorded("llama_batched_bench.txt")),
                         [Sample(Case("decode", 8, 64, 4), 2.376549), Sample(Case("decode", 8, 0, 4), 1.874906)])

    def test_text_around_the_objects_is_left_out(self):
        self.assertEqual(list(llama_cpp.objects('load {x} 1\n{"a": 1}\n\n{"b": {"c": 2}} done')), [{"a": 1}, {"b": {"c": 2}}])

    def test_trtmc_gives_the_work_of_a_token(self):
        prefill, _, decode, batch = trtmc.read_bench(recorded("trtmc_bench.json"))
        self.assertEqual((prefill.case, decode.case), (PREFILL, DECODE))
        self.assertEqual(batch.case, Case("decode", 8, 64, 4))
        # 21.542666650855487 GB/s at 561.3437502828647 tokens/s.
        self.assertAlmostEqual(decode.bytes_per_token, 38_376_960, delta=1)
        # 65.65099592411921 GFLOP/s at 2104.664851524774 tokens/s.
        self.assertAlmostEqual(prefill.operations_per_token, 31_193_088, delta=1)
        self.assertAlmostEqual(decode.read_roof, 39.10890459283417e9, delta=1)
        self.assertAlmostEqual(prefill.multiply_roof, 156.89542844106762e9, delta=1)


class Commands(unittest.TestCase):
    def test_the_peer_gets_one_run_a_depth_and_batches_of_decode_apart(self):
        cases = [Case("prefill", 128, 0, 1), Case("decode", 16, 0, 1), Case("decode", 16, 64, 1), Case("decode", 16, 64, 8)]
        lines = [" ".join(map(str, command)) for command, _ in llama_cpp.commands("bin", "m.gguf", cases, 2)]
        self.assertEqual(lines, ["bin/llama-bench -m m.gguf -t 2 -r 1 -o jsonl -d 0 -p 128 -n 16",
                                 "bin/llama-bench -m m.gguf -t 2 -r 1 -o jsonl -d 64 -p 0 -n 16",
                                 "bin/llama-batched-bench -m m.gguf -t 2 -c 640 -npp 64 -ntg 16 -npl 8 --output-format jsonl"])

    def test_trtmc_gets_one_run_for_each_depth_and_batch(self):
        cases = [Case("prefill", 128, 0, 1), Case("decode", 16, 0, 1), Case("decode", 16, 0, 8)]
        lines = [" ".join(map(str, command[3:])) for command, _ in trtmc.commands("trtmc", "b", cases, 2, "bf16")]
        common = "--json --quiet --threads 2 --kv-type bf16 --repeat 1 --depth 0"
        self.assertEqual(lines, [f"{common} --batch 1 --prefill 128 --decode 16", f"{common} --batch 8 --prefill 0 --decode 16"])


class Arithmetic(unittest.TestCase):
    def row(self):
        peer = [Sample(DECODE, speed) for speed in (10.0, 8.0, 12.0)]
        ours = [Sample(DECODE, speed, bytes_per_token=2e9, read_roof=roof)
                for speed, roof in ((11.0, 30e9), (12.0, 40e9), (9.0, 20e9))]
        return compare(DECODE, peer, ours)

    def test_medians_ratios_and_shares(self):
        row = self.row()
        self.assertEqual(row["peer"], {"min": 8.0, "median": 10.0, "max": 12.0})
        self.assertEqual(row["trtmc"], {"min": 9.0, "median": 11.0, "max": 12.0})
        self.assertEqual(row["ratio"], {"min": 0.75, "median": 1.1, "max": 1.5})
        self.assertAlmostEqual(row["peer_share"], 10 * 2 / 30)
        self.assertAlmostEqual(row["trtmc_share"], 11 * 2 / 30)

    def test_a_case_that_the_peer_does_not_have_has_no_ratio(self):
        row = compare(DECODE, None, [Sample(DECODE, 5.0, bytes_per_token=1.0)])
        self.assertNotIn("ratio", row)
        self.assertIsNone(row["trtmc_share"])

    def test_the_table_shows_what_was_measured(self):
        document = {"peer": {"name": "peer"}, "rows": [self.row()], "model": "m<1>", "threads": 2}
        self.assertIn("| decode 8 at 64 | 10.00 (8.00–12.00) | 11.00 (9.00–12.00) | 1.10 (0.75–1.50) | 67 % | 73 % | 30.0 GB/s read |",
                      report.table(document))
        self.assertIn("m&lt;1&gt;", report.svg(document))

    def test_time_that_the_host_took_away_is_apart(self):
        ticks = cpu_use.TICKS
        stat = f"cpu  {3 * ticks} {ticks} {2 * ticks} 99 5 0 {ticks} {4 * ticks} 0 0\ncpu0 1 2 3"
        self.assertEqual(cpu_use.all_use(stat), (7.0, 4.0))


class RandomGguf(unittest.TestCase):
    def test_names_are_llama_cpps(self):
        self.assertEqual(random_gguf.gguf_name("model.layers.7.mlp.down_proj.weight"), "blk.7.ffn_down.weight")
        self.assertEqual(random_gguf.gguf_name("model.embed_tokens.weight"), "token_embd.weight")

    def test_an_entry_is_key_type_and_value(self):
        self.assertEqual(random_gguf.entry("k", 7), struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 7))
        self.assertEqual(random_gguf.entry("k", "v"), struct.pack("<Q", 1) + b"k" + struct.pack("<IQ", 8, 1) + b"v")

    def test_the_large_shape_has_the_published_number_of_weights(self):
        tensors = random_gguf.checkpoint_module().tensor_list(random_gguf.config_of("3b"))
        weights = 0
        for _, shape, _, _ in tensors:
            weights += shape[0] * (shape[1] if len(shape) > 1 else 1)
        self.assertEqual(weights, 3_075_098_624)

    def test_a_blocks_scale_is_where_ggml_has_it(self):
        # ggml-common.h: block_q8_0 and block_q4_0 begin with it, block_q6_K ends with it.
        for kind, weights, size, at, most in ("q8_0", 32, 34, 0, 127), ("q4_0", 32, 18, 0, 8), ("q6_k", 256, 210, 208, 4064):
            blocks = b"".join(random_gguf.block_values(1, "name", 3 * weights, 0.25 * most, kind))
            self.assertEqual(len(blocks), 3 * size)
            for start in range(0, len(blocks), size):
                self.assertEqual(struct.unpack_from("<e", blocks, start + at), (0.25,), kind)


if __name__ == "__main__":
    unittest.main()
