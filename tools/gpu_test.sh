#!/bin/bash
# On a machine with a GPU, without a network: builds the CUDA backend, runs the tests that need a GPU, the
# same under compute-sanitizer, and the table of speeds. Each stage ends within nine minutes.
#
#   tools/gpu_test.sh tests       build, GPU tests, their log in $OUT/gpu_tests.log
#   tools/gpu_test.sh sanitizer   memcheck and racecheck of a small set
#   tools/gpu_test.sh bench       SmolLM3-3B's shape with random bf16, q8 and q4 weights: decode, prefill, batches
#
# GPU_BUILD=DIR uses a build that is there already. CMAKE_ARGS adds to the configuration, for instance where
# the libraries lie (-DCMAKE_PREFIX_PATH=DIR). OUT (default: the build) is where logs go.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${GPU_BUILD:-build/cuda}
out=${OUT:-$build}
bin=$build/bin
mkdir -p "$out"

build() {
  [ -z "${GPU_BUILD:-}" ] || return 0
  local architecture
  architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  [ "$architecture" = 90 ] && architecture=90a
  # shellcheck disable=SC2086  # A list of words.
  cmake --preset cuda -DTRTMC_CUDA_ARCHITECTURES="$architecture" ${CMAKE_ARGS:-} >"$out/configure.log" 2>&1 ||
    { tail -20 "$out/configure.log"; exit 1; }
  cmake --build --preset cuda -j "$(nproc)" \
    --target trtmc trtmc_backend_cuda backends_tests cuda_tests cuda_goldens_tests random_bundle cuda_sampling_bench >"$out/build.log" 2>&1 ||
    { grep -E 'error|FAILED' "$out/build.log" | head -20; exit 1; }
}

stage_tests() {
  build
  "$bin/trtmc" version
  local failed=0
  for tests in backends_tests cuda_tests cuda_goldens_tests; do
    "$bin/$tests" --gtest_brief=1 >>"$out/gpu_tests.log" 2>&1 || failed=1
  done
  grep -E 'PASSED|FAILED|SKIPPED' "$out/gpu_tests.log"
  return $failed
}

# Every kernel at least once: both types of keys, both of activations, few tokens and many.
stage_sanitizer() {
  build
  local few='*AgreesWithTheReference/*heads_3_to_1:*WithTheNeighbours/*heads_3_to_1:*CudaSampling*/4099'
  local fewest='*AgreesWithTheReference/bf16*heads_3_to_1:*WithTheNeighbours/bf16_kv_bf16_heads_3_to_1:*CudaSampling.Scores*/4099'
  compute-sanitizer --error-exitcode 1 --tool memcheck "$bin/cuda_tests" --gtest_brief=1 --gtest_filter="$few" | tail -3
  compute-sanitizer --error-exitcode 1 --tool racecheck "$bin/cuda_tests" --gtest_brief=1 --gtest_filter="$fewest" | tail -3
}

stage_bench() {
  build
  "$bin/cuda_sampling_bench"
  local folder=${BENCH_FOLDER:-/tmp} dtype activations cases
  for dtype in bf16 q8 q4; do
    [ -e "$folder/random_3b_$dtype.trtmc" ] || "$bin/random_bundle" --dtype "$dtype" "$folder/random_3b_$dtype.trtmc"
  done
  for dtype in bf16 q8 q4; do
    for activations in f32 bf16; do
      echo "$dtype weights, $activations activations"
      for cases in '--prefill 0 --decode 64 --batch 1,2,4,8,16' '--prefill 0 --decode 64 --depth 4096,16384' \
                   '--prefill 512,2048,8192 --decode 0' \
                   '--prefill 0 --decode 64 --depth 256 --batch 64,256 --kv-memory 24GiB'; do
        # shellcheck disable=SC2086  # A list of words.
        "$bin/trtmc" bench "$folder/random_3b_$dtype.trtmc" --backend cuda --kv-type bf16 --activations $activations --quiet --repeat 3 $cases
      done
      [ "$dtype" = bf16 ] || continue
      echo "bf16 weights, $activations activations, KV in fp8"
      for cases in '--prefill 0 --decode 64 --depth 0,4096,16384' '--prefill 512,8192 --decode 0' \
                   '--prefill 0 --decode 64 --depth 256 --batch 64,256 --kv-memory 24GiB'; do
        # shellcheck disable=SC2086  # A list of words.
        "$bin/trtmc" bench "$folder/random_3b_$dtype.trtmc" --backend cuda --kv-type fp8 --activations $activations --quiet --repeat 3 $cases
      done
    done
  done | tee "$out/bench.log"
}

case "${1:-}" in
  tests | sanitizer | bench) "stage_$1" ;;
  *) echo "usage: tools/gpu_test.sh tests|sanitizer|bench" >&2; exit 2 ;;
esac
