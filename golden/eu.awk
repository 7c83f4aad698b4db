# pt-pmp 3.5.7's rules for dialect eu (COMPAT.md), on eu-stack's text as it comes
function base(p) { sub(/.*\//, "", p); return p }
function done(   n, i, f, file, r) {
	if (frame == "") return
	n = split(frame, w, /[ \t]+/)
	if (w[2] !~ /0x/) exit 1
	f = w[3]; file = w[n]
	if (f ~ /[<(]/) {
		sub(/\(.*/, "", f)
		while (f ~ />::/) if (!gsub(/<[^<>]*>/, "", f)) break
		gsub(/ ?(void|const) ?/, "", f); gsub(/ /, "", f)
	}
	if (frame ~ /\?\?\(\)/) f = "??"
	if (index(f, "@@")) sub(/@@.*/, "", f)
	else if (file ~ /^\//) f = f "(" base(file) ")"
	s = s (s == "" ? "" : ",") f; frame = ""
}
/^#/ { done(); frame = $0; sub(/ +- 1 /, " ", frame); if (frame ~ /^#[0-9]+ +0x[0-9a-f]+( - .*)?$/) sub(/0x[0-9a-f]+/, "& ??()", frame); next }
/^ +\[/ { next }
/^ / { if (frame != "") frame = frame $0; next }
/^TID/ { done(); if (s != "") print s; s = "" }
END { done(); if (s != "") print s }
