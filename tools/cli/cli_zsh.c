/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_zsh.c - completion for zsh, from the tables
 *
 * A file for a folder in $fpath, by the name _PROGRAM.  The verb is found here and taken
 * off; zsh's own _arguments does the rest from one specification per option.
 */
#include "tools/cli/cli_zsh.h"

#include <string.h>

/*
 * Inside single quotes; with `special`, characters that _arguments would take as its own are
 * escaped too.
 */
static void quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (*text == '\\' || strchr(special, *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

/* ":DIR:_files -/": what a value is called and what completes it */
static void value_spec(FILE *out, const struct cli_option *option, const char *called)
{
	fputc(':', out);
	quoted(out, called, ":[]");
	fputc(':', out);
	if (option->kind == CLI_FILE) {
		fputs("_files", out);
	} else if (option->kind == CLI_DIR) {
		fputs("_files -/", out);
	} else if (option->kind == CLI_CHOICE) {
		fputc('(', out);
		cli_write_choices(out, option->choices);
		fputc(')', out);
	} else {
		fputc(' ', out); /* a number or free text: its name is shown, nothing is offered */
	}
}

static void option_spec(FILE *out, const struct cli_option *option)
{
	bool has_value = option->kind != CLI_FLAG;

	fputs(" \\\n\t\t\t", out);
	if (option->short_name)
		fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", option->short_name, option->name, option->short_name,
			has_value ? "+" : "", option->name, has_value ? "=" : "");
	else
		fprintf(out, "'%s--%s%s[", option->many ? "*" : "", option->name, has_value ? "=" : "");
	quoted(out, option->help, "[]:");
	fputc(']', out);
	if (has_value)
		value_spec(out, option, cli_arg_name(option));
	fputc('\'', out);
}

static void verb_case(FILE *out, const struct cli_verb *verb)
{
	int words = strchr(verb->name, ' ') ? 2 : 1, positional_idx = 0;
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	fprintf(out, "\t('%s')\n\t\tshift %d words\n\t\t(( CURRENT -= %d ))\n\t\t_arguments -s -S", verb->name, words,
		words);
	for (unsigned i = 0; i < flat.count; i++)
		option_spec(out, flat.option[i]);
	for (const struct cli_option *p = verb->positionals; p && p->name; p++) {
		fputs(" \\\n\t\t\t'", out);
		if (p->many)
			fputc('*', out);
		else
			fprintf(out, "%d%s", ++positional_idx, p->required ? "" : ":");
		value_spec(out, p, p->name);
		fputc('\'', out);
	}
	fputs("\n\t\t;;\n", out);
}

/*
 * 'images:Pack folders of images' for each verb whose name begins with `first`, which is left out
 * of it.
 */
static void describe(FILE *out, const struct cli_program *program, const char *indent, const char *first,
		     size_t first_length)
{
	fprintf(out, "%sverbs=(\n", indent);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		size_t length;

		if (strncmp(verb->name, first, first_length) ||
		    (!first_length && !cli_first_of_its_word(program, verb)))
			continue;
		length = strcspn(verb->name + first_length, " ");
		fprintf(out, "%s\t'%.*s:", indent, (int)length, verb->name + first_length);
		quoted(out, cli_text_of(program, verb)->summary, "");
		fputs("'\n", out);
	}
	fprintf(out, "%s)\n%s_describe -t verbs verb verbs\n", indent, indent);
}

void cli_complete_zsh(FILE *out, const struct cli_program *program)
{
	fprintf(out, "#compdef %s\n# zsh completion for %s, written by `%s --print-completion zsh`\n_%s() {\n",
		program->name, program->name, program->name, program->name);
	fputs("\tlocal -a verbs\n\tlocal verb=$words[2]\n\n\tif (( CURRENT == 2 )); then\n"
	      "\t\tif [[ $PREFIX == -* ]]; then\n\t\t\tcompadd -- --help --version\n\t\t\treturn\n\t\tfi\n",
	      out);
	describe(out, program, "\t\t", "", 0);
	fputs("\t\treturn\n\tfi\n\tif (( CURRENT > 3 )); then\n\t\tcase \"$words[2] $words[3]\" in\n", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (strchr(verb->name, ' '))
			fprintf(out, "\t\t('%s') verb='%s' ;;\n", verb->name, verb->name);
	fputs("\t\tesac\n\tfi\n\tcase $verb in\n", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		size_t length = strcspn(verb->name, " ");

		if (verb->name[length] && cli_first_of_its_word(program, verb)) {
			fprintf(out, "\t('%.*s')\n", (int)length, verb->name);
			describe(out, program, "\t\t", verb->name, length + 1);
			fputs("\t\t;;\n", out);
		}
		verb_case(out, verb);
	}
	fprintf(out, "\tesac\n}\n\n_%s \"$@\"\n", program->name);
}
