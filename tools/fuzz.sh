#!/bin/bash
# fuzz.sh [SECONDS [TARGET...]]: runs each libFuzzer target that long (60) from its corpus; a finding fails.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
cmake --preset asan >/dev/null
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls fuzz/*_fuzz.cc | sed 's|fuzz/\(.*\)_fuzz.cc|\1|')
cmake --build --preset asan -j "$(nproc)" --target "${targets[@]/%/_fuzz}" -- --quiet
for target in "${targets[@]}"; do
  work=build/asan/corpus/$target
  mkdir -p "$work"
  corpora=("$work" fuzz/corpus/"$target")
  [ ! -d fuzz/packed/"$target" ] || corpora+=(build/asan/testdata/fuzz/packed/"$target")
  log=build/asan/$target.log
  # A template may take as many steps as the interpreter's limit, which is many seconds under the sanitizers.
  case $target in jinja | jinja_grammar | chat_messages) timeout=120 ;; *) timeout=10 ;; esac
  if ! build/asan/bin/"${target}"_fuzz -max_total_time="$seconds" -timeout="$timeout" -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix=build/asan/"$target"- "${corpora[@]}" >"$log" 2>&1; then
    tail -40 "$log"
    echo "fuzz target $target found something; its input is beside build/asan/$target.log" >&2
    exit 1
  fi
  runs=$(grep -ao 'stat::number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$')
  echo "fuzz $target: $runs runs, $(grep -ao 'cov: [0-9]*' "$log" | tail -1), no finding"
done
