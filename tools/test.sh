#!/bin/bash
# Builds trtmc and passes its tests; installs what that needs. Without an option: format, layers, and
# everything but the slow tests, compiled by g++. `--all` is what CI runs: the docs as a site, clang-tidy, instructions
# a token by callgrind, the sanitizers and the fuzzers (compiled by clang), the CUDA and TensorRT backends where nvcc is,
# then the same as without an option, and PyPI's clients against the server. `--stage NAME` runs one stage.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
quick='slow|gpu|oracle'
export CTEST_OUTPUT_ON_FAILURE=1
export CCACHE_DEPEND=1  # What is compiled for the first time need not be preprocessed apart.
# Another clone of the same sources finds what this one has compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

say() { echo "== $* ($(date +%H:%M:%S))"; }

configure() {  # configure PRESET [options]
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >build-"$preset".log 2>&1 || { cat build-"$preset".log; exit 1; }
  rm -f build-"$preset".log
}

build() {  # build PRESET [configure options]: every target of the preset
  configure "$@"
  cmake --build --preset "$1" -j "$jobs" -- --quiet
}

venv() {  # venv FOLDER REQUIREMENTS [pip's options]
  local folder=$1 requirements=$2
  shift 2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  if ! cmp -s "$requirements" "$folder/installed.txt"; then
    "$folder/bin/pip" install -q --disable-pip-version-check "$@" -r "$requirements"
    cp "$requirements" "$folder/installed.txt"
  fi
}
oracles() { venv .venv tests/requirements.txt; }  # PyPI's tokenizers, jinja2, gguf, huggingface_hub, onnxruntime.

stage_format() { git ls-files '*.h' '*.c' '*.cc' '*.cu' '*.cuh' | grep -v unicode_ | xargs clang-format --dry-run -Werror; }
stage_dev() { oracles; build dev; cmake --build --preset dev --target all_verify_interface_header_sets -- --quiet; ctest --preset dev -j "$jobs" -LE "$quick"; }
stage_release() { oracles; build release -DTRTMC_TESTS=ON -DTRTMC_BENCH=ON; TRTMC_WALKS=10000 ctest --preset release -j "$jobs" -LE "$quick"; }
# The sanitizers run under clang, which compiles instrumented code in a quarter of g++'s time.
stage_asan() { build asan; ctest --preset asan -j "$jobs" -LE "$quick|differential|transcript|e2e|onnx"; }
stage_tsan() {  # What has threads: the pool, the backends, the engine, the library, downloads, the server.
  configure tsan
  cmake --build --preset tsan -j "$jobs" --target base_tests engine_tests api_tests library_tests conformance_tests hub_tests \
    http_tests openai_tests server_tests -- --quiet
  ctest --preset tsan -j "$jobs" -LE "$quick" -R '^(base|engine|api|library|conformance|hub|http|openai|server)\.'
}
# Instructions a token of what ships, counted by callgrind: a release build of the one program that needs.
stage_instructions() {
  configure release -DTRTMC_TESTS=ON
  cmake --build --preset release -j "$jobs" --target model_steps -- --quiet
  ctest --preset release -L instructions
}
stage_clang() { build clang; ctest --preset clang -j "$jobs" -L 'unit' -LE "$quick"; }
stage_tidy() { tools/tidy.sh; }
stage_arm64() {  # For 64-bit ARM, run by qemu: docs/arm64.md.
  tools/arm64_sysroot.sh
  build arm64
  # Death tests of the style that starts the program anew: the system can't, as it is another processor's.
  ctest --preset arm64 -j "$jobs" -L '^(unit|conformance)$' -E 'InterruptScopeDeathTest'
  ctest --preset arm64 -R '^transcript\.cli_golden$'
}
stage_fuzz() { tools/fuzz.sh 5; }
# docs/ as a site, its links, its list of messages.
stage_docs() { venv .venv-docs docs/requirements.txt; configure dev; ctest --preset dev -j "$jobs" -L docs; }
# PyPI's clients of OpenAI's API against the server.
stage_clients() {
  venv .venv-clients tests/clients/requirements.txt --no-deps --no-compile
  configure dev
  cmake --build --preset dev -j "$jobs" --target trtmc -- --quiet
  ctest --preset dev -j "$jobs" -L clients
}
stage_cuda() {  # Compiles the GPU's module, and runs what needs no GPU: plans, sentences, the loader.
  if ! command -v nvcc >/dev/null; then
    echo "nvcc is not here: the CUDA backend is not compiled"
    return
  fi
  configure cuda
  cmake --build --preset cuda -j "$jobs" --target trtmc backends_tests trtmc_backend_cuda cuda_tests cuda_goldens_tests -- --quiet
  ctest --preset cuda -j "$jobs" -R '^(backends\.(Module|Device|Failure|Steps|Segments|TermBlock|GemvPlan|GemmPlan|WgmmaPlan|QuantizedGemvPlan|QuantizedWgmmaPlan|Chunks)|structure\.module_cuda|cuda)'
  build/cuda/bin/trtmc version | grep '^cuda  *\(ready\|unavailable\)'
}

stage_tensorrt() {  # Compiles TensorRT's module against headers from PyPI, runs it on a fake, builds its networks with TensorRT-RTX.
  if ! command -v nvcc >/dev/null; then
    echo "the CUDA toolkit is not here: the TensorRT backend is not compiled"
    return
  fi
  venv .venv-tensorrt tests/tensorrt/requirements.txt --no-deps
  configure tensorrt -DTRTMC_TENSORRT_INCLUDE="$(echo "$PWD"/.venv-tensorrt/lib/python3*/site-packages/kernel_lens/include/tensorrt)"
  cmake --build --preset tensorrt -j "$jobs" --target trtmc trtmc_backend_tensorrt tensorrt_tests tensorrt11_tests tensorrt_routes_driver -- --quiet
  ctest --preset tensorrt -j "$jobs" -R '^(tensorrt(11)?\.|structure\.module_tensorrt)'
}

run() {
  for stage in "$@"; do
    say "$stage"
    "stage_$stage"
  done
  say "passed: $*"
}

tools/install_deps.sh --tests
case "${1:-}" in
  "") run format dev ;;
  --all) run format docs tidy instructions asan fuzz tsan cuda tensorrt dev clients ;;
  --stage) run "$2" ;;
  *) echo "usage: tools/test.sh [--all | --stage format|docs|dev|release|asan|tsan|clang|tidy|instructions|fuzz|clients|cuda|tensorrt|arm64]" >&2; exit 2 ;;
esac
