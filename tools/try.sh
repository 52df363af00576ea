#!/bin/sh
# From a clone to a conversation: installs what is needed, builds trtmc, turns the embedded model into a
# bundle, and opens a chat (without a terminal: answers one prompt). Quick when run again.
set -eu
cd "$(dirname "$0")/.."

tools/install_deps.sh
export CCACHE_DEPEND=1  # What is compiled for the first time need not be preprocessed apart.
[ -f build/release/build.ninja ] || { echo "configuring"; cmake --preset release -DTRTMC_TESTS=OFF -DTRTMC_BENCH=OFF >/dev/null; }
echo "building trtmc"
cmake --build --preset release --target trtmc -- --quiet
bundle=build/smollm3-tiny.trtmc
# Made anew when the program or the model is newer: a bundle is a build product.
if [ ! -f "$bundle" ] || [ build/release/bin/trtmc -nt "$bundle" ] || [ models/smollm3-tiny -nt "$bundle" ]; then
  build/release/bin/trtmc build models/smollm3-tiny -o "$bundle" --force
fi

if [ $# -gt 0 ]; then
  exec build/release/bin/trtmc run "$bundle" "$@"
elif [ -t 0 ] && [ -t 1 ]; then
  exec build/release/bin/trtmc chat "$bundle"
else
  exec build/release/bin/trtmc run "$bundle" --no-think "What is the capital of France?"
fi
