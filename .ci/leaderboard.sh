#!/usr/bin/env bash
# The leaderboard of our own runs, as a site: .ci/leaderboard.sh DIRECTORY. It needs no data: all
# people are generated. Some minutes on one core.
set -euo pipefail
cd "$(dirname "$0")/.."
site=$1
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

fpbench -q run benchmarks/claims.toml --out "$runs/claims"
fpbench -q run benchmarks/reports.toml --profile quick -s 'dataset=synthetic*' --out "$runs/reports"
fpbench board build "$runs"/* --output "$site" --no-third-party --title "fpbench: our own runs"
