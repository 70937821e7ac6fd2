/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_help.c - the text of --help, and the program's man page
 *
 * Help has two columns in 80, wrapped at blanks, and the examples last, where the eye ends up.  The
 * help of a verb with topics is a screen; --help=TOPIC has the rest.
 *
 * The page is of plain man(7) macros that groff, mandoc and heirloom troff know.  It has no date, so
 * that the same source gives the same bytes.  Options that verbs share are explained once,
 * where they come first, and named after that.
 */
#include "tools/common/cli_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"

#define LEFT_COLUMNS_MAX 27
#define TEXT_BYTES	 512

/* ---- --help ---- */

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

static void print_row(FILE *out, const char *left, const char *right, size_t left_columns)
{
	if (strlen(left) + 2 > left_columns)
		fprintf(out, "%s\n%*s", left, (int)left_columns, "");
	else
		fprintf(out, "%-*s", (int)left_columns, left);
	wrap(out, right, left_columns, left_columns);
}

static void print_option(FILE *out, const struct cli_option *option, bool is_positional, size_t left_columns)
{
	const char *shown = option->default_note ? option->default_note : option->default_value;
	char left[128], right[TEXT_BYTES], choices[TEXT_BYTES / 2] = "";

	left_text(option, is_positional, left, sizeof(left));
	if (option->kind == CLI_CHOICE && option->arg_name) /* else the left side has them */
		cli_choices_text(option->choices, "or ", choices, sizeof(choices));
	snprintf(right, sizeof(right), "%s%s%s%s%s%s", option->help, choices[0] ? ": " : "", choices, shown ? " [" : "",
		 shown ? shown : "", shown ? "]" : "");
	print_row(out, left, right, left_columns);
}

/* "        max=N" */
static void key_text(const struct cli_key *key, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "        %s%s%s", key->name, key->arg_name ? "=" : "",
		 key->arg_name ? key->arg_name : "");
}

static void print_keys(FILE *out, const struct cli_option *option, size_t left_columns)
{
	char left[128];

	for (unsigned t = 0; t < CLI_KEY_TABLES_MAX && option->keys[t]; t++)
		for (const struct cli_key *key = option->keys[t]; key->name; key++) {
			key_text(key, left, sizeof(left));
			if (key->help)
				print_row(out, left, key->help, left_columns);
		}
}

static void widen(size_t *columns, const char *left)
{
	if (strlen(left) + 2 > *columns && strlen(left) + 2 <= LEFT_COLUMNS_MAX)
		*columns = strlen(left) + 2;
}

/* Wide enough for all that is not wider than allowed, and two blanks. */
static size_t left_columns_of(const struct cli_verb *verb, const struct cli_flat *flat)
{
	const struct cli_option *positional = verb->positionals;
	size_t columns = 0;
	char left[128];

	for (; positional && positional->name; positional++) {
		left_text(positional, true, left, sizeof(left));
		widen(&columns, left);
	}
	for (unsigned i = 0; i < flat->count; i++) {
		left_text(flat->option[i], false, left, sizeof(left));
		widen(&columns, left);
		for (unsigned t = 0; t < CLI_KEY_TABLES_MAX && flat->option[i]->keys[t]; t++)
			for (const struct cli_key *key = flat->option[i]->keys[t]; key->name; key++) {
				key_text(key, left, sizeof(left));
				widen(&columns, left);
			}
	}
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

bool cli_has_topic(const struct cli_verb *verb, const char *topic)
{
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.own_count; i++)
		if (flat.option[i]->topic && (!topic || !strcmp(flat.option[i]->topic, topic)))
			return true;
	return false;
}

/* The options that --help shows alone: required ones, then others by topic. */
static void print_often(FILE *out, const struct cli_program *program, const struct cli_flat *flat, size_t left_columns)
{
	for (unsigned i = 0; i < flat->own_count; i++)
		if (flat->option[i]->required)
			print_option(out, flat->option[i], false, left_columns);
	for (const struct cli_topic *t = program->topics; t->name; t++)
		for (unsigned i = 0; i < flat->own_count; i++)
			if (flat->option[i]->often && !flat->option[i]->required &&
			    !strcmp(flat->option[i]->topic, t->name))
				print_option(out, flat->option[i], false, left_columns);
}

/* The options of a topic, or of all; with a summary above them. */
static void print_topics(FILE *out, const struct cli_program *program, const struct cli_verb *verb,
			 const struct cli_flat *flat, const char *topic, size_t left_columns)
{
	for (const struct cli_topic *t = program->topics; t->name; t++) {
		if (!cli_has_topic(verb, t->name) || (strcmp(topic, "all") && strcmp(topic, t->name)))
			continue;
		fprintf(out, "\n%c%s:\n", toupper((unsigned char)t->summary[0]), t->summary + 1);
		for (unsigned i = 0; i < flat->own_count; i++)
			if (!strcmp(flat->option[i]->topic, t->name)) {
				print_option(out, flat->option[i], false, left_columns);
				print_keys(out, flat->option[i], left_columns);
			}
	}
}

static void list_topics(FILE *out, const struct cli_program *program, const struct cli_verb *verb)
{
	size_t left_columns = strlen("  --help=all") + 2;
	char left[128];

	for (const struct cli_topic *t = program->topics; t->name; t++)
		if (cli_has_topic(verb, t->name) && strlen(t->name) + strlen("  --help=") + 2 > left_columns)
			left_columns = strlen(t->name) + strlen("  --help=") + 2;
	fputs("\nDefaults are in [brackets].  More options, by topic:\n", out);
	for (const struct cli_topic *t = program->topics; t->name; t++)
		if (cli_has_topic(verb, t->name)) {
			snprintf(left, sizeof(left), "  --help=%s", t->name);
			print_row(out, left, t->summary, left_columns);
		}
	print_row(out, "  --help=all", "every option", left_columns);
}

void cli_help_verb(FILE *out, const struct cli_program *program, const struct cli_verb *verb, const char *topic)
{
	const struct cli_option *positional = verb->positionals;
	const struct cli_text *text = cli_text_of(program, verb);
	bool has_topics = cli_has_topic(verb, NULL), all = !topic[0] || !strcmp(topic, "all");
	struct cli_flat flat;
	size_t left_columns;
	char usage[TEXT_BYTES];

	cli_flatten(verb, &flat);
	left_columns = left_columns_of(verb, &flat);
	cli_usage_text(program, verb, usage, sizeof(usage));
	fputs("Usage: ", out);
	wrap(out, usage, 7, 9);
	if (!all) {
		print_topics(out, program, verb, &flat, topic, left_columns);
		fprintf(out, "\nDefaults are in brackets.  The manual page %s(1) says more.\n", program->name);
		return;
	}
	fputc('\n', out);
	wrap(out, text->summary, 0, 0);
	fputc('\n', out);
	for (; positional && positional->name; positional++)
		print_option(out, positional, true, left_columns);
	if (has_topics && topic[0])
		print_topics(out, program, verb, &flat, topic, left_columns);
	else if (has_topics)
		print_often(out, program, &flat, left_columns);
	for (unsigned i = 0; !has_topics && i < flat.own_count; i++) {
		print_option(out, flat.option[i], false, left_columns);
		print_keys(out, flat.option[i], left_columns);
	}
	if (has_topics && topic[0])
		fputs("\nMessages and help:\n", out);
	for (unsigned i = flat.own_count; i < flat.count; i++)
		print_option(out, flat.option[i], false, left_columns);
	if (has_topics && !topic[0])
		list_topics(out, program, verb);
	print_examples(out, text->examples);
}

/*
 * How a verb is listed, and in *next the one to list behind it.  Verbs in a row that begin with one
 * word and do the same are one line: "plan ...".
 */
static void listed_name(const struct cli_program *program, const struct cli_verb *verb, const struct cli_verb **next,
			char *out, size_t out_bytes)
{
	size_t first = strcspn(verb->name, " ");

	*next = verb + 1;
	while (verb->name[first] && (*next)->name && !strncmp(verb->name, (*next)->name, first + 1) &&
	       !strcmp(cli_text_of(program, verb)->summary, cli_text_of(program, *next)->summary))
		(*next)++;
	if (*next > verb + 1)
		snprintf(out, out_bytes, "%.*s ...", (int)first, verb->name);
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
	fprintf(out, "\n'%s VERB --help' explains a verb; '%s --version' prints versions.\n", program->name,
		program->name);
	print_examples(out, text->examples);
}

/* ---- the man page ---- */

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

/*
 * The blocks of a text: paragraphs, "- an item" and "### a subheading".  An empty line is between
 * them, but not between items.  A sentence's end stays inside the line: roff would space it its own
 * way.
 */
static void paragraphs(FILE *out, const char *text)
{
	bool was_item = false, was_heading = false;

	for (size_t length; *text; text += length + strspn(text + length, "\n")) {
		bool is_item = !strncmp(text, "- ", 2), is_heading = !strncmp(text, "### ", 4);
		size_t mark = is_item ? 2 : is_heading ? 4 : 0;
		const char *end = strstr(text, "\n\n");
		char *block;

		length = end ? (size_t)(end - text) : strlen(text);
		block = xstrndup(text + mark, length - mark);
		if (is_item && was_item)
			fputs(".PD 0\n", out);
		fputs(is_item ? ".IP \\(bu 2\n" : was_heading ? ".br\n" : ".PP\n", out);
		if (is_heading)
			roff_font(out, 'B', block);
		else
			roff(out, block, false);
		fputs(is_item && was_item ? "\n.PD\n" : "\n", out);
		free(block);
		was_item = is_item;
		was_heading = is_heading;
	}
}

static void sentence(FILE *out, const char *text)
{
	const char first[] = {(char)toupper((unsigned char)text[0]), 0};

	roff(out, first, false);
	roff(out, text + 1, false);
	fputs(".\n", out);
}

static void default_entry(FILE *out, const struct cli_option *option)
{
	const char *shown = option->default_note ? option->default_note : option->default_value;

	if (!shown)
		return;
	fputs("The default is ", out);
	roff(out, shown, false);
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
	default_entry(out, option);
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
	if (!option->keys[0])
		return;
	fputs(".RS\n", out);
	for (unsigned t = 0; t < CLI_KEY_TABLES_MAX && option->keys[t]; t++)
		for (const struct cli_key *key = option->keys[t]; key->name; key++) {
			if (!key->help)
				continue;
			fputs(".TP\n", out);
			roff_font(out, 'B', key->name);
			if (key->arg_name) {
				fputc('=', out);
				roff_font(out, 'I', key->arg_name);
			}
			fputc('\n', out);
			sentence(out, key->help);
		}
	fputs(".RE\n", out);
}

/* The first verb that has the option too, or the verb itself. */
static const struct cli_verb *explained_at(const struct cli_program *program, const struct cli_verb *verb,
					   const struct cli_option *option)
{
	const struct cli_verb *other = program->verbs;

	for (; other != verb; other++)
		for (unsigned t = 0; t < CLI_TABLES_MAX && other->options[t]; t++)
			for (const struct cli_option *o = other->options[t]; o->name; o++)
				if (o == option)
					return other;
	return verb;
}

/* The options that no earlier verb has: of a topic, below its summary, or with NULL all of them. */
static void option_entries(FILE *out, const struct cli_program *program, const struct cli_verb *verb,
			   const struct cli_topic *topic)
{
	struct cli_flat flat;
	bool any = false;

	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.own_count; i++) {
		const struct cli_option *option = flat.option[i];

		if (explained_at(program, verb, option) != verb || (topic && strcmp(option->topic, topic->name)))
			continue;
		if (topic && !any) {
			char heading[TEXT_BYTES];

			snprintf(heading, sizeof(heading), "%c%s", toupper((unsigned char)topic->summary[0]),
				 topic->summary + 1);
			fputs(".PP\n", out);
			roff_font(out, 'B', heading);
			fputc('\n', out);
		}
		any = true;
		option_entry(out, option);
	}
}

/* The options that an earlier verb has explained, in a sentence for each of these verbs. */
static void options_of_others(FILE *out, const struct cli_program *program, const struct cli_verb *verb)
{
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	for (const struct cli_verb *other = program->verbs; other != verb; other++) {
		bool any = false;

		for (unsigned i = 0; i < flat.own_count; i++) {
			if (explained_at(program, verb, flat.option[i]) != other)
				continue;
			if (!any) {
				fputs(".PP\nAs for ", out);
				roff_font(out, 'B', other->name);
				fputc(':', out);
			}
			fputs(any ? ",\n\\fB\\-\\-\\fR" : "\n\\fB\\-\\-\\fR", out);
			roff_font(out, 'B', flat.option[i]->name);
			any = true;
		}
		if (any)
			fputs(".\n", out);
	}
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
	for (const struct cli_option *p = verb->positionals; p && p->name; p++) {
		fputs(".TP\n", out);
		roff_font(out, 'I', p->name);
		fputc('\n', out);
		sentence(out, p->help);
		default_entry(out, p);
	}
	if (!cli_has_topic(verb, NULL))
		option_entries(out, program, verb, NULL);
	for (const struct cli_topic *t = program->topics; t && t->name && cli_has_topic(verb, NULL); t++)
		option_entries(out, program, verb, t);
	options_of_others(out, program, verb);
	examples_block(out, text->examples);
}

void cli_man(FILE *out, const struct cli_program *program)
{
	const struct cli_text *text = cli_text_of(program, NULL);
	struct memory_file version;
	struct cli_flat flat;

	memory_file_open(&version);
	program->print_version(version.stream);
	memory_file_close(&version);
	version.data[strcspn(version.data, "\n")] = 0; /* the program's own, without those of libraries */
	fputs(".TH ", out);
	for (const char *c = program->name; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fputs(" 1 \"\" \"", out);
	roff(out, version.data, true);
	fputs("\" \"User Commands\"\n.nh\n.ad l\n", out);
	free(version.data);
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
	fputs(".SH EXIT STATUS\n", out);
	for (size_t i = 0; i < sizeof(exit_meanings) / sizeof(exit_meanings[0]); i++)
		fprintf(out, ".TP\n\\fB%d\\fR\n%s\n", exit_meanings[i].exit_code, exit_meanings[i].meaning);
	fputs(".SH ENVIRONMENT\n"
	      ".TP\n\\fBNO_COLOR\\fR\nIf set and not empty, messages have no colour.\n"
	      ".TP\n\\fBTERM\\fR, \\fBCOLUMNS\\fR\nThe terminal that messages and progress are drawn on.\n",
	      out);
	fputs(".SH EXAMPLES\n", out);
	examples_block(out, text->examples);
	if (program->see_also) {
		fputs(".SH SEE ALSO\n", out);
		roff(out, program->see_also, true);
		fputc('\n', out);
	}
}
