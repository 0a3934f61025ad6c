# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# What the scripts share. Sourced after `set -euo pipefail`.

SLUICE_REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Everything a script says about itself goes to stderr, so that `demo --json` leaves stdout to the JSON.
say() { printf '== %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# bad_usage TEXT: an argument is wrong; TEXT names it and what is allowed.
bad_usage() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

cpu_count() { nproc; }

# fetch COMMAND...: runs what gets packages from elsewhere, three times at most: pip and others try again where nobody
# answers, but give up where an answer breaks off in its middle. What it said last is noted as a failure.
fetch() {
  local try status said
  said=$(mktemp)
  for try in 1 2 3; do
    status=0
    # Into a file: a pipe would wait for whatever a package leaves running.
    "$@" >"$said" 2>&1 </dev/null || status=$?
    cat "$said" >&2
    if ((status == 0)); then break; fi
    say "try $try of 3 ended with $status: $*"
    if ((try < 3)); then sleep "${SLUICE_FETCH_PAUSE_S:-10}"; fi
  done
  if ((status != 0)); then tail -n 3 "$said" | sed 's/^/not fetched: /' | note_failures; fi
  rm -f "$said"
  return "$status"
}

# Seconds of work done, for people.
elapsed() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

presets() { printf '%s\n' dev release asan tsan fuzz; }

check_preset() {
  presets | grep -qxF -- "$1" || bad_usage "no preset '$1'; there are: $(presets | paste -sd' ')"
}

# What to put before ctest (scripts/check).
CTEST_PREFIX=()

# Runs ctest in the folder of a preset and counts what passed: each GoogleTest case, and each test
# program that is none. Sets `passed`, `failed` and `skipped`; fails when something failed.
# Usage: run_ctest PRESET [ctest arguments]
run_ctest() {
  local preset=$1 results status=0
  shift
  results=$SLUICE_REPO/build/$preset/results
  rm -rf "$results"
  mkdir -p "$results"
  # Two more than there are processors: most of what tests do is waiting for a GPU that takes its time.
  (cd "$SLUICE_REPO" && GTEST_OUTPUT="xml:$results/" \
    "${CTEST_PREFIX[@]}" ctest --preset "$preset" \
    --parallel "$(($(cpu_count) + 2))" --output-junit "$results/ctest.junit" "$@" </dev/null) >&2 || status=$?
  [[ -s $results/ctest.junit ]] || die "ctest left no results (status $status)"
  read -r passed failed skipped < <(count_results "$results")
  # ctest may fail where no test did: none was found, or it was stopped.
  if ((status != 0 && failed == 0)); then failed=1; fi
  ((failed == 0))
}

# note_failures: the lines of its input name tests that failed. .ci/run shows them beside its closing line, because the
# output of a run this long is often kept in part.
note_failures() {
  if [[ -n ${SLUICE_FAILURES_FILE:-} ]]; then cat >>"$SLUICE_FAILURES_FILE"; else cat >/dev/null; fi
}

# "passed failed skipped" of a folder of results: ctest.junit names every test and how it ended; a
# GoogleTest program has an XML file of its own name with its cases.
count_results() {
  local results=$1 name state xml tests failures disabled skips errors
  local passed=0 failed=0 skipped=0
  while read -r state name; do
    xml=$results/$name.xml
    if [[ -s $xml ]]; then
      read -r tests failures disabled errors < <(sed -nE \
        's/.*<testsuites tests="([0-9]+)" failures="([0-9]+)" disabled="([0-9]+)" errors="([0-9]+)".*/\1 \2 \3 \4/p' "$xml") ||
        die "$xml says nothing of how its tests ended"
      skips=$(grep -c '<skipped' "$xml" || true)
      failures=$((failures + errors))
      # All cases passed, yet the program failed: it crashed or leaked afterwards.
      if [[ $state == fail ]] && ((failures == 0)); then
        failures=1
      fi
      if ((failures > 0)); then note_failures <<<"$name"; fi
      failed=$((failed + failures))
      skipped=$((skipped + skips + disabled))
      passed=$((passed + tests - failures - skips - disabled))
    else
      case $state in
        run) passed=$((passed + 1)) ;;
        disabled | skipped) skipped=$((skipped + 1)) ;;
        # "notrun" without a reason to skip: the program is missing.
        *)
          failed=$((failed + 1))
          note_failures <<<"$name"
          ;;
      esac
    fi
  done < <(awk -F'"' '
    /<testcase name="/ { name = $2; state = $(NF - 1) }
    /<skipped message="SKIP/ { state = "skipped" }
    /<\/testcase>/ { print state, name }' "$results/ctest.junit")
  echo "$passed $failed $skipped"
}

# "passed failed skipped" of a result file of pytest.
count_pytest() {
  { grep -oE '<testcase classname="[^"]*" name="[^"]*"[^>]*><(failure|error)' "$1" || true; } |
    awk -F'"' '{ print $2 "::" $4 }' | note_failures
  sed -nE 's/.*<testsuite [^>]*errors="([0-9]+)" failures="([0-9]+)" skipped="([0-9]+)" tests="([0-9]+)".*/\1 \2 \3 \4/p' "$1" |
    awk '{ print $4 - $1 - $2 - $3, $1 + $2, $3 }'
}

# The closing line of a script. Inside .ci/run, which prints one line for all, the numbers go to a file.
closing_line() {
  local passed=$1 failed=$2 skipped=$3
  if ((skipped > 0)); then say "$skipped skipped"; fi
  if [[ -n ${SLUICE_COUNTS_FILE:-} ]]; then
    printf '%d %d\n' "$passed" "$failed" >>"$SLUICE_COUNTS_FILE"
  else
    printf '%d passed, %d failed\n' "$passed" "$failed"
  fi
}
