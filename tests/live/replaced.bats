#!/usr/bin/env bats
# Programs whose files have been replaced, written over or removed since they were started: the
# names are those of what runs.
# shellcheck disable=SC2086 # of $symbols: they are words

load lib

# names by symbols alone: what is compared is whose they are
symbols='--no-lines --no-inlines'

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	pids=()
}

teardown() {
	[ ${#pids[@]} -eq 0 ] || kill -9 "${pids[@]}" 2>/dev/null || true
}

# await_ready FILE
await_ready() {
	for _ in $(seq 500); do
		! grep -qx ready "$1" || return 0
		sleep 0.02
	done
	cat "$1"
	lib_fail "the server did not come up"
}

# layout FILE BUILD: its functions' addresses and names, without the build in them
layout() {
	nm --defined-only "$1" | sed -n "s/_$2\$//p"
}

# functions of other names at the same addresses: or nothing below would prove anything
builds_are_alike() {
	local name
	for name in replaced_X libreplaced_X.so; do
		layout "$lib_fixtures/${name/X/a}" a >a
		layout "$lib_fixtures/${name/X/b}" b >b
		[ "$(wc -l <a)" -ge 3 ]
		diff a b
	done
}

# make_tree BUILD: what the package has in it
make_tree() {
	rm -rf tree
	mkdir -p tree/opt tree/DEBIAN
	cp "$lib_fixtures/replaced_$1" tree/opt/server
	cp "$lib_fixtures/libreplaced_$1.so" tree/opt/libreplaced.so
}

# make_stripped_tree BUILD: and debug files next to them, which are left in debug.BUILD/.build-id, too
make_stripped_tree() {
	local name id
	make_tree "$1"
	for name in server libreplaced.so; do
		id=$(readelf -n tree/opt/$name | sed -n 's/^ *Build ID: //p')
		mkdir -p "debug.$1/.build-id/${id:0:2}"
		objcopy --only-keep-debug tree/opt/$name tree/opt/$name.debug
		cp tree/opt/$name.debug "debug.$1/.build-id/${id:0:2}/${id:2}.debug"
		(cd tree/opt && strip $name && objcopy --add-gnu-debuglink=$name.debug $name)
	done
}

# install_tree VERSION: as apt does it, by dpkg
install_tree() {
	mkdir -p db/info db/updates root
	touch db/status db/available
	cat >tree/DEBIAN/control <<-END
		Package: server
		Version: $1
		Architecture: all
		Maintainer: nobody <nobody@localhost>
		Description: a server
	END
	dpkg-deb --root-owner-group -b tree server.deb >dpkg.log 2>&1 &&
		PATH=$PATH:/usr/sbin:/sbin dpkg --force-unsafe-io --log=/dev/null --admindir="$PWD/db" \
			--instdir="$PWD/root" -i server.deb >>dpkg.log 2>&1 3>&- ||
		{ cat dpkg.log; return 1; }
}

# start_server: of what is installed; sets pid
start_server() {
	rm -f ready
	root/opt/server >ready </dev/null 2>&1 3>&- &
	pid=$!
	pids+=("$pid")
	disown
	await_ready ready
}

# capture ARGUMENT...: to out; nothing on standard error, but that a busy machine's clock did not tick
capture() {
	"$pmp" "$@" >out 2>err
	cat out err
	no_line -vE '[(]100[.]00%[)]; [0-9]+ ticks did not come' err
	[ "$(lines_marked out)" -eq 0 ]
}

# shows_MODE BUILD: whether out does, by names from .symtab or debug information
shows_threads() {
	# libc's debug files may not be looked for
	local l='([(]libreplaced.so[)])?' to_end='(start_thread|libc::[?][?])[^,]*,((__)?clone3?|libc::[?][?])[^,]*$'
	[ "$(lines_total out "hidden_stay_$1$l,library_stay_$1$l,(inlined_$1,)?serve_$1,main(,|\$)")" -eq 1 ] &&
		[ "$(lines_total out ",napper_$1,$to_end")" -eq 1 ] &&
		[ "$(lines_total out "(^|,| )spinner_$1,$to_end")" -eq 1 ]
}

shows_cpu() {
	local l='([(]libreplaced.so[)])?'
	[ "$(lines_total out "^hidden_spin_$1$l,library_spin_$1$l,spinner_$1,start_thread")" -ge 1 ]
}

shows_offcpu() {
	local l='([(]libreplaced.so[)])?'
	[ "$(lines_total out ",hidden_nap_$1$l,library_nap_$1$l,napper_$1,start_thread")" -ge 50000 ] &&
		[ "$(lines_total out ",hidden_stay_$1$l,library_stay_$1$l,(inlined_$1,)?serve_$1,main")" -ge 50000 ]
}

# profile MODE BUILDS ARGUMENT...: once more where the machine was too busy for every server to run
profile() {
	local i build
	for ((i = 0; i < 10; i++)); do
		capture "${@:3}" --mode="$1" --duration 0.4 --no-kernel
		for build in $2; do
			"shows_$1" "$build" || continue 2
		done
		return 0
	done
}

# all_modes PIDS BUILD...: the names of these builds, and of no other
all_modes() {
	local mode build
	for mode in threads cpu offcpu; do
		if [ $mode = threads ]; then
			capture -p "$1" $symbols
		else
			profile $mode "${*:2}" -p "$1" $symbols
		fi
		for build in a b; do
			case " ${*:2} " in
			*" $build "*) shows_$mode "$build" ;;
			*) no_line -E "_$build([(,]|\$)" out ;;
			esac
		done
	done
}

@test "replaced by dpkg: the old process has the old names, a new one the new, also in one capture" {
	builds_are_alike
	make_tree a
	install_tree 1
	start_server
	old=$pid
	all_modes "$old" a
	make_tree b
	install_tree 2
	[ "$(grep -c 'root/opt/.*(deleted)$' "/proc/$old/maps")" -ge 8 ]
	all_modes "$old" a
	start_server
	all_modes "$pid" b
	all_modes "$old,$pid" a b
}

@test "replaced, with separate debug files: those of the running build, by build id" {
	make_stripped_tree a
	install_tree 1
	start_server
	old=$pid
	make_stripped_tree b
	install_tree 2
	start_server
	# the new build's are next to it, and are its own by checksum
	capture -p "$old,$pid" --debug-dir "$PWD/debug.a"
	shows_threads a
	shows_threads b
	grep -q ',inlined_a,hidden_stay_a,library_stay_a,inlined_a,serve_a,' out
	grep -q ',inlined_b,hidden_stay_b,library_stay_b,inlined_b,serve_b,' out
	capture -p "$old" --debug-dir "$PWD/debug.a"
	shows_threads a
	no_line _b out
}

@test "replaced, and the debug file next to the program is the new build's: refused, and that is said" {
	make_stripped_tree a
	install_tree 1
	start_server
	old=$pid
	capture -p "$old" --debug-dir "$PWD/none"
	shows_threads a
	make_stripped_tree b
	install_tree 2
	"$pmp" -p "$old" --debug-dir "$PWD/none" >out 2>err
	cat out err
	# what is left are the library's dynamic symbols
	[ "$(lines_total out 'libreplaced::[?][?][(]libreplaced.so[)],library_stay_a[(]libreplaced.so[)],::[?][?],')" -eq 1 ]
	no_line _b out
	sort err >refused
	opt=$PWD/root/opt
	cat >expected <<-END
		bpf-pmp: $opt/libreplaced.so.debug is not used: it is not of the same build as $opt/libreplaced.so
		bpf-pmp: $opt/server.debug is not used: it is not of the same build as $opt/server
	END
	diff expected refused
	# nor is it lost on the new build
	start_server
	capture -p "$pid" --debug-dir "$PWD/none"
	shows_threads b
	"$pmp" -p "$old,$pid" --debug-dir "$PWD/none" >out 2>err
	cat out
	shows_threads b
	no_line -E '(hidden_stay|serve|inlined)_a' out
	sort err | diff expected -
}

# enter_overlay: a mount namespace with an overlay in it, over a folder that has the server; sets
# pid, of a server in there, and there, the way to its files from outside. What is written to is a
# tmpfs: the file system of the test's own folder may be unfit.
enter_overlay() {
	mkdir -p mount
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --propagation private bash -c '
		mount -t tmpfs none mount
		mkdir mount/lower mount/upper mount/work mount/merged
		cp tree/opt/* mount/lower/
		mount -t overlay none mount/merged \
			-o "lowerdir=mount/lower,upperdir=mount/upper,workdir=mount/work"
		exec mount/merged/server
	' >ready 2>&1 </dev/null 3>&- &
	pid=$!
	pids+=("$pid")
	disown
	await_ready ready
	there=/proc/$pid/root$PWD/mount
	no_line "mount/merged" /proc/self/mounts
	grep -q "$PWD/mount/merged/libreplaced.so" "/proc/$pid/maps"
	[ ! -e "$there/upper/libreplaced.so" ]
}

# start_there: another server in there; sets pid
start_there() {
	local of=$pid
	rm -f ready
	nsenter --mount --target "$of" "$PWD/mount/merged/server" \
		>ready </dev/null 2>&1 3>&- &
	pid=$!
	pids+=("$pid")
	disown
	await_ready ready
}

@test "on an overlay: copied up since, then removed" {
	make_tree a
	enter_overlay
	all_modes "$pid" a
	touch "$there/merged/server" "$there/merged/libreplaced.so"
	[ -e "$there/upper/server" ]
	[ -e "$there/upper/libreplaced.so" ]
	all_modes "$pid" a
	rm "$there/merged/server" "$there/merged/libreplaced.so"
	all_modes "$pid" a
}

@test "on an overlay: replaced by rename" {
	make_tree a
	enter_overlay
	old=$pid
	for name in server libreplaced.so; do
		new=$lib_fixtures/${name/libreplaced/libreplaced_b}
		cp "${new/%server/replaced_b}" "$there/merged/$name.dpkg-new"
		mv "$there/merged/$name.dpkg-new" "$there/merged/$name"
	done
	all_modes "$old" a
	start_there
	all_modes "$pid" b
	all_modes "$old,$pid" a b
}

# What is mapped stays the file below; by its path, and by /proc/PID/map_files, there is the other.
@test "on an overlay: a library that was written over in place" {
	make_stripped_tree a
	rm tree/opt/*.debug
	enter_overlay
	old=$pid
	cp "$lib_fixtures/libreplaced_b.so" "$there/merged/libreplaced.so"
	capture -p "$old" --debug-dir "$PWD/debug.a" $symbols
	shows_threads a
	no_line _b out
	for mode in cpu offcpu; do
		profile $mode a -p "$old" --debug-dir "$PWD/debug.a" $symbols
		shows_$mode a
		no_line _b out
	done
	# without debug files: what the process has in its memory
	capture -p "$old" --debug-dir "$PWD/none" $symbols
	[ "$(lines_total out ',library_stay_a[(]libreplaced.so[)],')" -eq 1 ]
	no_line _b out
	cp "$lib_fixtures/replaced_b" "$there/merged/server.new"
	mv "$there/merged/server.new" "$there/merged/server"
	start_there
	capture -p "$old,$pid" --debug-dir "$PWD/debug.a" $symbols
	shows_threads a
	shows_threads b
	# no program or library at all any more
	echo nothing >"$there/merged/libreplaced.so"
	capture -p "$old" --debug-dir "$PWD/debug.a" $symbols
	shows_threads a
}
