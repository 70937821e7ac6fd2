/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_help.c - the text of --help
 *
 * Two columns in 80, wrapped at blanks, and the examples last, where the eye ends up.
 * A test holds each verb's help to one screen.
 */
#include "tools/common/cli_help.h"

#include <string.h>

#include "tools/common/wrap.h"

#define LEFT_COLUMNS_MAX 27
#define TEXT_BYTES	 512

/* "  -o, --out DIR", or "  SRC" for a positional */
static void left_text(const struct cli_option *option, bool is_positional, char *out, size_t out_bytes)
{
	const char *arg_name = cli_arg_name(option);
	char short_part[8] = "    ";

	if (is_positional) {
		snprintf(out, out_bytes, "  %s", option->name);
		return;
	}
	if (option->short_name)
		snprintf(short_part, sizeof(short_part), "-%c, ", option->short_name);
	snprintf(out, out_bytes, "  %s--%s%s%s", short_part, option->name, arg_name ? " " : "",
		 arg_name ? arg_name : "");
}

static void right_text(const struct cli_option *option, char *out, size_t out_bytes)
{
	const char *shown = option->default_note ? option->default_note : option->default_value;
	char choices[TEXT_BYTES / 2] = "";

	if (option->kind == CLI_CHOICE && option->arg_name) /* else the left side has them */
		cli_choices_text(option->choices, "or ", choices, sizeof(choices));
	snprintf(out, out_bytes, "%s%s%s%s%s%s", option->help, choices[0] ? ": " : "", choices, shown ? " [" : "",
		 shown ? shown : "", shown ? "]" : "");
}

static void print_row(FILE *out, const struct cli_option *option, bool is_positional, const char *right,
		      size_t left_columns)
{
	char left[128];

	left_text(option, is_positional, left, sizeof(left));
	if (strlen(left) + 2 > left_columns)
		fprintf(out, "%s\n%*s", left, (int)left_columns, "");
	else
		fprintf(out, "%-*s", (int)left_columns, left);
	wrap(out, right, left_columns, left_columns);
}

static void print_positional(FILE *out, const struct cli_option *positional, size_t left_columns)
{
	char right[TEXT_BYTES];

	right_text(positional, right, sizeof(right));
	print_row(out, positional, true, right, left_columns);
}

/*
 * Option number `i` and those that share its line: "-q, --quiet warnings only; -v, --verbose:
 * more".  Returns the next one.
 */
static unsigned print_option(FILE *out, const struct cli_flat *flat, unsigned i, size_t left_columns)
{
	const struct cli_option *first = flat->option[i];
	char left[128], right[TEXT_BYTES], line[4 * TEXT_BYTES];
	size_t used;

	right_text(first, line, sizeof(line));
	for (i++; i < flat->count && flat->option[i]->beside; i++) {
		used = strlen(line);
		left_text(flat->option[i], false, left, sizeof(left));
		right_text(flat->option[i], right, sizeof(right));
		snprintf(line + used, sizeof(line) - used, "; %s: %s", left + strspn(left, " "), right);
	}
	print_row(out, first, false, line, left_columns);
	return i;
}

/* Wide enough for all that is not wider than allowed, and two blanks. */
static size_t left_columns_of(const struct cli_verb *verb, const struct cli_flat *flat)
{
	const struct cli_option *positional = verb->positionals;
	size_t columns = 0;
	char left[128];

	for (unsigned i = 0; i < flat->count; i++) {
		left_text(flat->option[i], false, left, sizeof(left));
		if (!flat->option[i]->beside && strlen(left) + 2 > columns && strlen(left) + 2 <= LEFT_COLUMNS_MAX)
			columns = strlen(left) + 2;
	}
	for (; positional && positional->name; positional++)
		if (strlen(positional->name) + 4 > columns && strlen(positional->name) + 4 <= LEFT_COLUMNS_MAX)
			columns = strlen(positional->name) + 4;
	return columns;
}

static void print_examples(FILE *out, const char *examples)
{
	fprintf(out, "\nExample%s:\n", strchr(examples, '\n') ? "s" : "");
	while (*examples) {
		size_t length = strcspn(examples, "\n");

		fprintf(out, "  %.*s\n", (int)length, examples);
		examples += length + (examples[length] == '\n');
	}
}

void cli_help_verb(FILE *out, const struct cli_program *program, const struct cli_verb *verb)
{
	const struct cli_option *positional = verb->positionals;
	const struct cli_text *text = cli_text_of(program, verb);
	struct cli_flat flat;
	size_t left_columns;
	char usage[TEXT_BYTES];

	cli_flatten(verb, &flat);
	left_columns = left_columns_of(verb, &flat);
	cli_usage_text(program, verb, usage, sizeof(usage));
	fputs("Usage: ", out);
	wrap(out, usage, 7, 9);
	fputc('\n', out);
	wrap(out, text->summary, 0, 0);
	fputc('\n', out);
	for (; positional && positional->name; positional++)
		print_positional(out, positional, left_columns);
	for (unsigned i = 0; i < flat.count;)
		i = print_option(out, &flat, i, left_columns);
	print_examples(out, text->examples);
}

/* Verbs in a row that begin with one word and do the same are one line: "plan ...". */
static bool same_family(const struct cli_program *program, const struct cli_verb *a, const struct cli_verb *b)
{
	size_t bytes = strcspn(a->name, " ");

	return a->name[bytes] && b->name && !strncmp(a->name, b->name, bytes + 1) &&
	       !strcmp(cli_text_of(program, a)->summary, cli_text_of(program, b)->summary);
}

/* How a verb is listed, and in *next the one to list behind it. */
static void listed_name(const struct cli_program *program, const struct cli_verb *verb, const struct cli_verb **next,
			char *out, size_t out_bytes)
{
	*next = verb + 1;
	while (same_family(program, verb, *next))
		(*next)++;
	if (*next > verb + 1)
		snprintf(out, out_bytes, "%.*s ...", (int)strcspn(verb->name, " "), verb->name);
	else
		snprintf(out, out_bytes, "%s", verb->name);
}

void cli_help_program(FILE *out, const struct cli_program *program)
{
	const struct cli_text *text = cli_text_of(program, NULL);
	const struct cli_verb *next;
	size_t left_columns = 0;
	char name[128];

	for (const struct cli_verb *verb = program->verbs; verb->name; verb = next) {
		listed_name(program, verb, &next, name, sizeof(name));
		if (strlen(name) + 4 > left_columns)
			left_columns = strlen(name) + 4;
	}
	fprintf(out, "Usage: %s VERB [options]\n\n%s - ", program->name, program->name);
	wrap(out, text->summary, strlen(program->name) + 3, 0);
	fputc('\n', out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb = next) {
		listed_name(program, verb, &next, name, sizeof(name));
		fprintf(out, "  %-*s", (int)left_columns - 2, name);
		wrap(out, cli_text_of(program, verb)->summary, left_columns, left_columns);
	}
	fprintf(out, "\n'%s VERB --help' explains a verb; '%s --version' names versions.\n", program->name,
		program->name);
	print_examples(out, text->examples);
}
