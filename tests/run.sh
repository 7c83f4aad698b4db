#!/bin/sh
# Runs test suites and counts: tests/run.sh SUITE... (unit, cli, live, db, kernels): cmocka programs, bats
# files and *.t scripts. Each prints TAP; one that dies, or prints less than it planned, counts as
# failed. With CI set, a test that skips is a failure: there, everything it needs is installed. Only
# pt-pmp's own samples are not ours to bring.
# The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.." || exit
B=${B:-build}
export B
mkdir -p "$B/tests"
results=$B/tests/results
: >"$results"

# run SUITE NAME COMMAND...: show the TAP and note what came of it
run() {
	suite=$1
	name=$2
	shift 2
	printf '# %s: %s\n' "$suite" "$name"
	tap=$B/tests/last.tap
	"$@" >"$tap" 2>&1
	status=$?
	cat "$tap"
	awk -v suite="$suite" -v name="$name" -v status="$status" -v ci="${CI:-}" '
		/^1\.\.[0-9]+/ { planned += substr($1, 4) }
		# cmocka says `not ok` of a test that skips
		/^(not )?ok .*# *[Ss][Kk][Ii][Pp]/ {
			if (ci != "" && (name $0) !~ /ptpmp.samples/) {
				printf "# skipped in CI, which is a failure: %s\n", $0 > "/dev/stderr"
				failed++
			} else
				skipped++
			next
		}
		/^ok / { passed++ }
		/^not ok / { failed++; print "# failed: " suite " " name ": " $0 > "/dev/stderr" }
		END {
			missing = planned - passed - failed - skipped
			if (missing > 0 || (status != 0 && !failed && !skipped)) {
				printf "# failed: %s %s: ended with status %d, %d tests missing\n",
					suite, name, status, missing > "/dev/stderr"
				failed += missing > 0 ? missing : 1
			}
			if (!planned) {
				printf "# failed: %s %s: no tests\n", suite, name > "/dev/stderr"
				failed += !failed
			}
			print suite, passed + 0, failed + 0, skipped + 0
		}' "$tap" >>"$results"
}

for suite in "$@"; do
	case $suite in
	unit)
		for program in "$B"/tests/unit/test_*; do
			[ -x "$program" ] || continue
			case $program in *.d) continue ;; esac
			CMOCKA_MESSAGE_OUTPUT=TAP run unit "${program##*/}" "$program"
		done
		;;
	cli | live | db | kernels)
		for file in tests/"$suite"/*.bats tests/"$suite"/*.t; do
			[ -e "$file" ] || continue
			case $file in
			*.bats) run "$suite" "${file##*/}" bats --tap "$file" ;;
			*.t) run "$suite" "${file##*/}" "$file" ;;
			esac
		done
		;;
	*)
		echo "tests/run.sh: no suite is called $suite" >&2
		exit 1
		;;
	esac
done

awk '{ ran[$1] += $2 + $3; passed += $2; failed += $3; skipped += $4 }
	END {
		for (suite in ran)
			printf "# %s: %d ran\n", suite, ran[suite]
		if (!(passed + failed)) {
			print "# no test ran"
			failed = 1
		}
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed != 0
	}' "$results"
