#!/usr/bin/env bash
# What the GitHub Action of this repository runs (action.yml): assesses a report, or runs a matrix
# strictly, and writes what was printed on the page of the workflow, too. Its exit code is fpbench's.
#
# Files of the current folder are what is judged: none is imported (-I), none is an option by its
# name (--), and a run of the matrix that lies there counts for nothing (--out).
set -uo pipefail

if [ -n "${INPUT_REPORT:-}" ] && [ -z "${INPUT_MATRIX:-}" ]; then
  words=(assess)
  for option in people known group prediction label max-leak max-proven max-undecided protect-hidden json; do
    variable=INPUT_${option^^}
    variable=${variable//-/_}
    [ -z "${!variable:-}" ] || words+=("--$option=${!variable}")
  done
  words+=(-- "$INPUT_REPORT")
elif [ -n "${INPUT_MATRIX:-}" ] && [ -z "${INPUT_REPORT:-}" ]; then
  scratch=$(mktemp -d) || exit 2
  words=(run --strict --out "$scratch/run")
  [ -z "${INPUT_JSON:-}" ] || words+=("--json=$INPUT_JSON")
  words+=(-- "$INPUT_MATRIX")
else
  echo "error: give the input \`report\` or the input \`matrix\`" >&2
  exit 2
fi

output=$(fpbench --plain "${words[@]}" 2>&1)
code=$?
# Names in files may look like commands to the workflow: it is told to read none of what follows.
token=$(python3 -I -c 'import secrets; print(secrets.token_hex(16))') || exit 2
printf '::stop-commands::%s\n%s\n::%s::\n' "$token" "$output" "$token"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  # Indented, it is shown as it is, whatever it holds.
  { printf '### fpbench\n\n'; sed 's/^/    /' <<< "$output"; printf '\n'; } >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
