# SPDX-License-Identifier: Apache-2.0
# manual.awk - the text of a tool's manual and --help, as C that the build compiles
#
# awk -f docs/manual.awk docs/man/shardpack.md >manual.c
#
# A page is a small part of Markdown.  "# TOOL" begins the tool's own text, "## VERB" that of a
# verb.  Each has a summary, which is one sentence; then paragraphs, items that begin with "- ", and
# subheadings ("### "); and last a block of `sh`, the examples.  What else a page holds is an error.
function refuse(why) {
	print FILENAME ":" FNR ": " why >"/dev/stderr"
	failed = 1
	exit 1
}
function quoted(s) {
	gsub(/\\/, "&&", s)
	gsub(/"/, "\\\\&", s)
	gsub(/\n/, "\\n", s)
	return "\"" s "\""
}
# A paragraph, an item or a subheading is over: it is one line of the text.
function end_block() {
	if (block == "")
		return
	if (summary == "") {
		if (block !~ /^[A-Z].*[^.]\.$/)
			refuse("the summary of " name " is no sentence: " block)
		summary = substr(block, 1, length(block) - 1)
	} else
		text = text (text == "" ? "" : "\n\n") block
	block = ""
}
function end_section() {
	end_block()
	if (name == "")
		return
	if (summary == "")
		refuse(name " has no summary")
	if (examples == "")
		refuse(name " has no examples")
	if (!count++) # the first is the tool itself, as the manual's first line has it
		summary = tolower(substr(summary, 1, 1)) substr(summary, 2)
	printf "\t{%s,\n\t %s,\n\t %s,\n\t %s},\n", quoted(name), quoted(summary), quoted(text), quoted(examples)
}
function begin_section(heading) {
	end_section()
	name = heading
	if (seen[name]++)
		refuse(name " is there twice")
	summary = text = examples = ""
	complete = 0
}
BEGIN {
	print "/* The build made this of a page in docs/man: change that. */"
	print "#include \"tools/common/cli.h\"\n"
	print "const struct cli_text cli_manual[] = {"
}
in_examples && /^```$/ { in_examples = 0; complete = 1; next }
in_examples { examples = examples (examples == "" ? "" : "\n") $0; next }
/^# ./ && name == "" { begin_section(substr($0, 3)); next }
/^## ./ && name != "" { begin_section(substr($0, 4)); next }
/^$/ { end_block(); next }
/^<!-- .* -->$/ && name == "" { next }
name == "" { refuse("this stands before the first heading") }
complete { refuse("nothing follows the examples of " name) }
/^```sh$/ { end_block(); in_examples = 1; next }
/^### ./ || /^- / { end_block(); block = $0; next }
/^  [^ ]/ && block ~ /^- / { block = block " " substr($0, 3); next }
block ~ /^(- |###)/ { refuse("an empty line ends an item or a subheading") }
/^[ \t#|>*+<]/ || /^```/ || /^[0-9]+\. / { refuse("a manual has no such thing: " $0) }
{ block = block (block == "" ? "" : " ") $0 }
END {
	if (failed)
		exit 1
	if (in_examples)
		refuse("the examples of " name " do not end")
	end_section()
	print "\t{0},\n};"
}
