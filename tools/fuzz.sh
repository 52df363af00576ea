#!/bin/bash
# fuzz.sh [SECONDS [TARGET...]]: runs each libFuzzer target that long (60) from its corpus; a finding fails.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
cmake --preset fuzz >/dev/null
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls fuzz/*_fuzz.cc | sed 's|fuzz/\(.*\)_fuzz.cc|\1|')
cmake --build --preset fuzz -j "$(nproc)" --target "${targets[@]/%/_fuzz}" -- --quiet
for target in "${targets[@]}"; do
  work=build/fuzz/corpus/$target
  mkdir -p "$work"
  log=build/fuzz/$target.log
  if ! build/fuzz/bin/"${target}"_fuzz -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix=build/fuzz/"$target"- "$work" fuzz/corpus/"$target" >"$log" 2>&1; then
    tail -40 "$log"
    echo "fuzz target $target found something; its input is beside build/fuzz/$target.log" >&2
    exit 1
  fi
  echo "fuzz $target: $(grep -o 'stat::number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$') runs, no finding"
done
