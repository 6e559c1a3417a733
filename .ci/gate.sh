#!/usr/bin/env bash
# What the GitHub Action of this repository runs (action.yml): assesses a report, or runs a matrix
# strictly, and writes what was printed on the page of the workflow, too. Its exit code is fpbench's.
set -uo pipefail

if [ -n "${INPUT_REPORT:-}" ] && [ -z "${INPUT_MATRIX:-}" ]; then
  words=(assess "$INPUT_REPORT")
  for option in people known group prediction label max-leak max-proven json; do
    variable=INPUT_${option^^}
    variable=${variable//-/_}
    [ -z "${!variable:-}" ] || words+=("--$option" "${!variable}")
  done
elif [ -n "${INPUT_MATRIX:-}" ] && [ -z "${INPUT_REPORT:-}" ]; then
  words=(run "$INPUT_MATRIX" --strict)
  [ -z "${INPUT_JSON:-}" ] || words+=(--json "$INPUT_JSON")
else
  echo "error: give the input \`report\` or the input \`matrix\`" >&2
  exit 2
fi

output=$(fpbench --plain "${words[@]}" 2>&1)
code=$?
# Names in files may look like commands to the workflow: it is told to read none of what follows.
token=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
printf '::stop-commands::%s\n%s\n::%s::\n' "$token" "$output" "$token"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  # Indented, it is shown as it is, whatever it holds.
  { printf '### fpbench\n\n'; sed 's/^/    /' <<< "$output"; printf '\n'; } >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
