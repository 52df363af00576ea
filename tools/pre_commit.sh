#!/bin/sh
# Checks what is staged: format, whitespace, layers. Install: ln -s ../../tools/pre_commit.sh .git/hooks/pre-commit
set -eu
cd "$(git rev-parse --show-toplevel)"
git diff --cached --check
git diff --cached --name-only --diff-filter=ACM -- '*.h' '*.cc' | grep -v unicode_ | xargs -r clang-format --dry-run -Werror
tools/check_layers.py src
