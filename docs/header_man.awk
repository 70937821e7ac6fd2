# SPDX-License-Identifier: Apache-2.0
# header_man.awk - a public header as a man page: comments become text, declarations stay code
#
# awk -v version=0.1.0 -f docs/header_man.awk include/shard.h >shard.h.3
function safe(line) {
	gsub(/\\/, "\\e", line)
	gsub(/-/, "\\-", line)
	if (line ~ /^[.']/)
		line = "\\&" line
	return line
}
function code(line) {
	if (!in_code)
		print ".PP\n.in +2\n.EX"
	in_code = 1
	print safe(line)
}
function end_code() {
	if (in_code)
		print ".EE\n.in"
	in_code = 0
}
# A line of a comment; one that is indented further is part of a table and keeps its form.
function text(line) {
	end_code()
	if (line == "")
		print ".PP"
	else if (line ~ /^  /)
		print ".br\n.nf\n" safe(line) "\n.fi"
	else
		print safe(line)
}
# The line "NAME - what it is for", which is the first of a header's first comment.
!name && /^ \* shard[a-z_]*\.h - / {
	name = $2
	sub(/^ \* [^ ]+ - /, "")
	printf ".TH %s 3 \"\" \"libshard %s\" \"Library Functions\"\n", toupper(name), version
	print ".SH NAME\n" name " \\- " safe($0)
	print ".SH SYNOPSIS\n.nf\n#include <" name ">\n.PP"
	print "cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs libshard)\n.fi\n.SH DESCRIPTION"
	in_comment = 1
	next
}
!name { next }
/^\/\* clang-format o/ || /^#(ifn?def|endif|include)/ || /^#define SHARD_(([A-Z]+_)?H$|API )/ || /^extern "C"/ { next }
/^\/\* ---- .* ---/ {
	end_code()
	gsub(/^\/\* -+ | -+ \*\/$/, "")
	print ".SH " toupper(safe($0))
	next
}
/^\/\*$/ { print ".PP"; in_comment = 1; next }
in_comment && /^ \*\// { in_comment = 0; next }
in_comment { sub(/^ \* ?/, ""); text($0); next }
/^\/\* .*\*\/$/ { sub(/^\/\* /, ""); sub(/ \*\/$/, ""); end_code(); print ".PP"; text($0); next }
/^}$/ && !body { next } # the end of extern "C"
/^$/ { if (!body) end_code(); next }
{
	sub(/^SHARD_API /, "")
	body = ($0 ~ /{$/) ? 1 : ($0 ~ /^}/) ? 0 : body
	code($0)
}
END {
	end_code()
	print ".SH SEE ALSO\n.BR shard.h (3),\n.BR shard_gpu.h (3),\n.BR shard_inspect.h (3),\n.BR shard_pack.h (3),\n.BR shard_transform.h (3),\n.BR shardpack (1),\n.BR shardcat (1)"
}
