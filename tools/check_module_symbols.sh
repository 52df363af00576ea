#!/bin/sh
# check_module_symbols.sh MODULE.so: fails unless the module exports trtmc_backend_v1 and nothing else. Two
# copies of a class in one process would otherwise be joined by the dynamic linker.
exported=$(nm -D --defined-only "$1" | awk '{print $3}')
[ "$exported" = trtmc_backend_v1 ] && exit 0
echo "$1 exports: $exported" >&2
exit 1
