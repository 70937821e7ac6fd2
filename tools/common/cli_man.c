/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_man.c - the program's man page, from the tables
 *
 * Plain man(7) macros that groff, mandoc and heirloom troff know.  The page has no date, so
 * that the same source gives the same bytes.  Options of a table that verbs share are
 * explained once, where they come first, and named after that.
 */
#include "tools/common/cli_man.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/cli_value.h"
#include "tools/common/exit_code.h"
#include "tools/common/memory_file.h"
#include "tools/common/message.h"

#define TEXT_BYTES 512

static const struct {
	int exit_code;
	const char *meaning;
} exit_meanings[] = {
	{EXIT_DONE, "Done."},
	{EXIT_BAD, "Something is corrupt, or input is bad beyond what was allowed."},
	{EXIT_USAGE, "The command line is wrong."},
	{EXIT_IO, "The system refused: a file, the disk, memory or a device."},
	{EXIT_UNSUPPORTED, "Well-formed, but it needs a newer or fuller build."},
	{EXIT_MISMATCH, "Intact, but not what the manifest says."},
	{EXIT_STOPPED, "Asked to stop, and did so with work left: run the same command again."},
	{EXIT_INTERRUPTED, "Interrupted by SIGINT or SIGTERM."},
};

/*
 * Text as roff: what is special to it becomes harmless, and `code` is bold.  A dash that begins a
 * word is an option's and must stay a minus, so that it can be copied, and so must those of code;
 * others are hyphens.  With `literal` all are minus, and a backquote is one.
 */
static void roff(FILE *out, const char *text, bool literal)
{
	char before = '\n';
	bool code = false;

	for (; *text; before = *text++) {
		if (before == '\n' && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '\'')
			fputs("\\(aq", out);
		else if (*text == '"')
			fputs("\\(dq", out);
		else if (*text == '`' && literal)
			fputs("\\(ga", out);
		else if (*text == '`')
			fputs((code = !code) ? "\\fB" : "\\fR", out);
		else if (*text == '^')
			fputs("\\(ha", out);
		else if (*text == '~')
			fputs("\\(ti", out);
		else if (*text == '-' && (literal || code || !isalnum((unsigned char)before)))
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

/* \fBtext\fR and the like; font is 'B' or 'I'. */
static void roff_font(FILE *out, char font, const char *text)
{
	fprintf(out, "\\f%c", font);
	roff(out, text, true);
	fputs("\\fR", out);
}

/* A paragraph, "- an item" or "### a subheading", the first `length` bytes of `text`. */
static void block(FILE *out, const char *text, size_t length, bool below_heading)
{
	bool item = !strncmp(text, "- ", 2), heading = !strncmp(text, "### ", 4);
	size_t mark = item ? 2 : heading ? 4 : 0;
	char *copy = strndup(text + mark, length - mark);

	fputs(item ? ".IP \\(bu 2\n" : below_heading ? ".br\n" : ".PP\n", out);
	if (heading)
		roff_font(out, 'B', copy ? copy : "");
	else
		roff(out, copy ? copy : "", false);
	fputc('\n', out);
	free(copy);
}

/*
 * The blocks of a text, with an empty line between; items that follow each other have none.  A
 * sentence's end stays inside the line: roff would space it its own way.
 */
static void paragraphs(FILE *out, const char *text)
{
	bool was_item = false, was_heading = false, is_item;

	for (size_t length; *text; text += length + strspn(text + length, "\n")) {
		const char *end = strstr(text, "\n\n");

		length = end ? (size_t)(end - text) : strlen(text);
		is_item = !strncmp(text, "- ", 2);
		if (is_item && was_item)
			fputs(".PD 0\n", out);
		block(out, text, length, was_heading);
		if (is_item && was_item)
			fputs(".PD\n", out);
		was_item = is_item;
		was_heading = !strncmp(text, "### ", 4);
	}
}

static void sentence(FILE *out, const char *text)
{
	fputc(toupper((unsigned char)text[0]), out);
	roff(out, text + 1, false);
	fputs(".\n", out);
}

/* Everything about the value that the help line does not say. */
static void value_notes(FILE *out, const struct cli_option *option)
{
	char text[TEXT_BYTES] = "";

	if (option->kind == CLI_CHOICE)
		cli_choices_text(option->choices, "or ", text, sizeof(text));
	else
		cli_range_text(option, text, sizeof(text));
	if (text[0]) {
		fputs(option->kind == CLI_CHOICE   ? "One of "
		      : !option->max		   ? ""
		      : option->max == option->min ? "Only "
						   : "From ",
		      out);
		roff(out, text, false);
		fputs(".\n", out);
	}
	if (option->kind == CLI_SIZE)
		fputs("A size in bytes, or with K, M, G or T, which are powers of 1024.\n", out);
	else if (option->kind == CLI_COUNT_OR_PERCENT)
		fputs("A count, or a percentage such as 2%.\n", out);
	if (option->many)
		fputs("May be given more than once.\n", out);
	if (option->required)
		fputs("Required.\n", out);
	if (option->default_note || option->default_value) {
		fputs("The default is ", out);
		roff(out, option->default_note ? option->default_note : option->default_value, false);
		fputs(".\n", out);
	}
}

static void option_entry(FILE *out, const struct cli_option *option)
{
	const char *arg_name = cli_arg_name(option);

	fputs(".TP\n", out);
	if (option->short_name)
		fprintf(out, "\\fB\\-%c\\fR, ", option->short_name);
	fputs("\\fB\\-\\-\\fR", out);
	roff_font(out, 'B', option->name);
	if (arg_name) {
		fputc(' ', out);
		roff_font(out, 'I', arg_name);
	}
	fputc('\n', out);
	sentence(out, option->help);
	value_notes(out, option);
}

static void positional_entry(FILE *out, const struct cli_option *positional)
{
	fputs(".TP\n", out);
	roff_font(out, 'I', positional->name);
	fputc('\n', out);
	sentence(out, positional->help);
	if (positional->default_note || positional->default_value) {
		fputs("The default is ", out);
		roff(out, positional->default_note ? positional->default_note : positional->default_value, false);
		fputs(".\n", out);
	}
}

/* The verb before `verb` that has the table too, or NULL. */
static const struct cli_verb *explained_at(const struct cli_program *program, const struct cli_verb *verb,
					   const struct cli_option *table)
{
	for (const struct cli_verb *other = program->verbs; other != verb; other++)
		for (unsigned t = 0; t < CLI_TABLES_MAX && other->options[t]; t++)
			if (other->options[t] == table)
				return other;
	return NULL;
}

static void option_table(FILE *out, const struct cli_program *program, const struct cli_verb *verb,
			 const struct cli_option *table)
{
	const struct cli_verb *other = explained_at(program, verb, table);

	if (!other) {
		for (const struct cli_option *option = table; option->name; option++)
			option_entry(out, option);
		return;
	}
	fputs(".PP\nAs for ", out);
	roff_font(out, 'B', other->name);
	fputc(':', out);
	for (const struct cli_option *option = table; option->name; option++) {
		fputs(option == table ? "\n\\fB\\-\\-\\fR" : ",\n\\fB\\-\\-\\fR", out);
		roff_font(out, 'B', option->name);
	}
	fputs(".\n", out);
}

static void examples_block(FILE *out, const char *examples)
{
	fputs(".PP\n.RS 4\n.nf\n", out);
	roff(out, examples, true);
	fputs("\n.fi\n.RE\n", out);
}

static void verb_section(FILE *out, const struct cli_program *program, const struct cli_verb *verb)
{
	const struct cli_text *text = cli_text_of(program, verb);
	char usage[TEXT_BYTES];

	fputs(".SS ", out);
	cli_usage_text(program, verb, usage, sizeof(usage));
	roff(out, usage, true);
	fputc('\n', out);
	sentence(out, text->summary);
	paragraphs(out, text->description);
	for (const struct cli_option *p = verb->positionals; p && p->name; p++)
		positional_entry(out, p);
	for (unsigned t = 0; t < CLI_TABLES_MAX && verb->options[t]; t++)
		option_table(out, program, verb, verb->options[t]);
	examples_block(out, text->examples);
}

/* .TH, with the first line of --version as the source. */
static void title(FILE *out, const struct cli_program *program)
{
	struct memory_file version;

	if (memory_file_open(&version))
		program->print_version(version.stream);
	if (memory_file_close(&version))
		version.data[strcspn(version.data, "\n")] = 0;
	else
		fail(EXIT_IO, "out of memory for the version");
	fputs(".TH ", out);
	for (const char *c = program->name; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fputs(" 1 \"\" \"", out);
	roff(out, version.data ? version.data : program->name, true);
	fputs("\" \"User Commands\"\n.nh\n.ad l\n", out);
	free(version.data);
}

static void closing_sections(FILE *out, const struct cli_program *program)
{
	fputs(".SH EXIT STATUS\n", out);
	for (size_t i = 0; i < sizeof(exit_meanings) / sizeof(exit_meanings[0]); i++)
		fprintf(out, ".TP\n\\fB%d\\fR\n%s\n", exit_meanings[i].exit_code, exit_meanings[i].meaning);
	fputs(".SH ENVIRONMENT\n"
	      ".TP\n\\fBNO_COLOR\\fR\nIf set and not empty, messages have no colour.\n"
	      ".TP\n\\fBTERM\\fR, \\fBCOLUMNS\\fR\nThe terminal that messages and progress are drawn on.\n",
	      out);
	fputs(".SH EXAMPLES\n", out);
	examples_block(out, cli_text_of(program, NULL)->examples);
	if (program->see_also) {
		fputs(".SH SEE ALSO\n", out);
		roff(out, program->see_also, true);
		fputc('\n', out);
	}
}

void cli_man(FILE *out, const struct cli_program *program)
{
	const struct cli_text *text = cli_text_of(program, NULL);
	struct cli_flat flat;

	title(out, program);
	fputs(".SH NAME\n", out);
	roff(out, program->name, true);
	fputs(" \\- ", out);
	roff(out, text->summary, false);
	fputs("\n.SH SYNOPSIS\n", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		char usage[TEXT_BYTES];

		cli_usage_text(program, verb, usage, sizeof(usage));
		roff(out, usage, true);
		fputs("\n.br\n", out);
	}
	fprintf(out, "%s \\-\\-version\n", program->name);
	fputs(".SH DESCRIPTION\n", out);
	paragraphs(out, text->description);
	fputs(".SH VERBS\n", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		verb_section(out, program, verb);
	fputs(".SH COMMON OPTIONS\n", out);
	cli_flatten(program->verbs, &flat);
	for (unsigned i = flat.own_count; i < flat.count; i++)
		option_entry(out, flat.option[i]);
	closing_sections(out, program);
}
