/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_fish.c - completion for fish 3 and later, from the tables
 *
 * One `complete` line per verb and per option, each under a condition on the words before
 * the cursor: exactly those of a verb's first word, or beginning with a verb's words.
 */
#include "tools/cli/cli_fish.h"

#include <string.h>

static void quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* What completes a value of this kind. */
static void value_words(FILE *out, const struct cli_option *option)
{
	if (option->kind == CLI_FILE) {
		fputs(" -r -F", out);
	} else if (option->kind == CLI_DIR) {
		fputs(" -x -a '(__fish_complete_directories)'", out);
	} else if (option->kind == CLI_CHOICE) {
		fputs(" -x -a '", out);
		cli_write_choices(out, option->choices);
		fputc('\'', out);
	} else {
		fputs(" -x", out);
	}
}

static void verb_lines(FILE *out, const struct cli_program *program, const struct cli_verb *verb)
{
	bool takes_files = false, takes_directories = false;
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.count; i++) {
		fprintf(out, "complete -c %s -n '__%s_in %s' -l %s", program->name, program->name, verb->name,
			flat.option[i]->name);
		if (flat.option[i]->short_name)
			fprintf(out, " -s %c", flat.option[i]->short_name);
		if (flat.option[i]->kind != CLI_FLAG)
			value_words(out, flat.option[i]);
		fputs(" -d ", out);
		quoted(out, flat.option[i]->help);
		fputc('\n', out);
	}
	for (const struct cli_option *p = verb->positionals; p && p->name; p++) {
		takes_files |= p->kind == CLI_FILE;
		takes_directories |= p->kind == CLI_DIR;
	}
	if (takes_files || takes_directories)
		fprintf(out, "complete -c %s -n '__%s_in %s' %s\n", program->name, program->name, verb->name,
			takes_files ? "-F" : "-a '(__fish_complete_directories)'");
}

void cli_complete_fish(FILE *out, const struct cli_program *program)
{
	const char *name = program->name;

	fprintf(out, "# fish completion for %s, written by `%s --print-completion fish`\n", name, name);
	fprintf(out, "function __%s_in --description 'the words before the cursor begin with these'\n", name);
	fputs("    set -l typed (commandline -opc)\n"
	      "    test (count $typed) -gt (count $argv); or return 1\n"
	      "    for i in (seq (count $argv))\n"
	      "        test \"$typed[\"(math $i + 1)\"]\" = \"$argv[$i]\"; or return 1\n"
	      "    end\n"
	      "end\n",
	      out);
	fprintf(out, "function __%s_at --description 'the words before the cursor are these'\n", name);
	fprintf(out, "    test (count (commandline -opc)) -eq (math (count $argv) + 1); and __%s_in $argv\nend\n",
		name);
	fprintf(out, "complete -c %s -f\n", name);
	fprintf(out, "complete -c %s -n __%s_at -l help -s h -d 'print the verbs and exit'\n", name, name);
	fprintf(out, "complete -c %s -n __%s_at -l version -d 'print versions and exit'\n", name, name);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		size_t length = strcspn(verb->name, " ");

		if (cli_first_of_its_word(program, verb)) {
			fprintf(out, "complete -c %s -n __%s_at -a %.*s -d ", name, name, (int)length, verb->name);
			quoted(out, cli_text_of(program, verb)->summary);
			fputc('\n', out);
		}
		if (verb->name[length]) {
			fprintf(out, "complete -c %s -n '__%s_at %.*s' -a %s -d ", name, name, (int)length, verb->name,
				verb->name + length + 1);
			quoted(out, cli_text_of(program, verb)->summary);
			fputc('\n', out);
		}
		verb_lines(out, program, verb);
	}
}
