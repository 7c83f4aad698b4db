#!/bin/sh
# The unwind table of every ELF object under /usr/lib, and of mariadbd, says what .eh_frame says.
# Prints TAP.
cd "$(dirname "$0")/../.." || exit 1
echo 1..1
find /usr/lib /usr/sbin/mariadbd -type f -print0 |
	"${B:-build}/tests/tools/table_vs_eh_frame" >"${B:-build}/tests/table.log" 2>&1
status=$?
sed 's/^/# /' "${B:-build}/tests/table.log"
if [ $status -eq 0 ]; then
	echo "ok 1 - unwind tables equal .eh_frame"
else
	echo "not ok 1 - unwind tables equal .eh_frame"
fi
exit $status
