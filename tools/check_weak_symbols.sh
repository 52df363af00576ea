#!/bin/sh
# Fails if an object compiled for one instruction set offers the linker a symbol that code for an older
# CPU could end up with: a weak function compiled for AVX-512 kills an AVX2 machine with SIGILL.
status=0
for object in "$@"; do
  bad=$(nm -C --defined-only "$object" | awk '$2 ~ /^[WVu]$/')
  [ -z "$bad" ] || { echo "$object defines weak symbols:"; echo "$bad"; status=1; }
done
exit $status
