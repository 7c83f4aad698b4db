#!/bin/sh
# Every row of every ELF object under /usr/lib, and of mariadbd, equals libdw's. Prints TAP.
cd "$(dirname "$0")/../.." || exit 1
echo 1..1
find /usr/lib /usr/sbin/mariadbd -type f -print0 |
	"${B:-build}/tests/tools/eh_frame_vs_libdw" >"${B:-build}/tests/eh_frame.log" 2>&1
status=$?
sed 's/^/# /' "${B:-build}/tests/eh_frame.log"
if [ $status -eq 0 ]; then
	echo "ok 1 - .eh_frame rows equal libdw's"
else
	echo "not ok 1 - .eh_frame rows equal libdw's"
fi
exit $status
