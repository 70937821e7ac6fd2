/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_table.c - questions of parsing, help, manual and completions to a command line's tables
 */
#include "tools/common/cli_table.h"

#include <assert.h>
#include <string.h>

/* clang-format off */
static const struct cli_option common_table[] = {
	{.name = "quiet", .short_name = 'q', .kind = CLI_FLAG, .offset = offsetof(struct cli_common, quiet),
	 .help = "warnings and errors only"},
	{.name = "verbose", .short_name = 'v', .kind = CLI_FLAG, .offset = offsetof(struct cli_common, verbose),
	 .help = "more notes", .beside = true},
	{.name = "help", .short_name = 'h', .kind = CLI_FLAG, .offset = offsetof(struct cli_common, help),
	 .help = "print this and exit"},
	{0},
};
/* clang-format on */

const struct cli_text *cli_text_of(const struct cli_program *program, const struct cli_verb *verb)
{
	const struct cli_text *text = program->texts;

	while (verb && text->name && strcmp(text->name, verb->name))
		text++;
	assert(text->name);
	return text;
}

void cli_flatten(const struct cli_verb *verb, struct cli_flat *flat)
{
	flat->count = 0;
	for (unsigned t = 0; t < CLI_TABLES_MAX && verb->options[t]; t++)
		for (const struct cli_option *o = verb->options[t]; o->name && flat->count < CLI_OPTIONS_MAX; o++)
			flat->option[flat->count++] = o;
	flat->own_count = flat->count;
	for (const struct cli_option *o = common_table; o->name && flat->count < CLI_OPTIONS_MAX; o++)
		flat->option[flat->count++] = o;
}

size_t cli_choice(const char *choices, unsigned idx, const char **choice)
{
	while (idx--) {
		choices = strchr(choices, '|');
		if (!choices)
			return 0;
		choices++;
	}
	*choice = choices;
	return strcspn(choices, "|");
}

void cli_choices_text(const char *choices, const char *last_word, char *out, size_t out_bytes)
{
	const char *choice, *unused;
	size_t length, used = 0;

	out[0] = 0;
	for (unsigned i = 0; (length = cli_choice(choices, i, &choice)) && used < out_bytes; i++) {
		bool is_last = !cli_choice(choices, i + 1, &unused);

		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s%s%.*s", i && !is_last ? ", " : "",
					 i && is_last ? " " : "", i && is_last ? last_word : "", (int)length, choice);
	}
}

const char *cli_arg_name(const struct cli_option *option)
{
	if (option->kind == CLI_FLAG)
		return NULL;
	if (option->arg_name)
		return option->arg_name;
	return option->kind == CLI_CHOICE ? option->choices : "VALUE";
}

/* "SRC", "[SRC]", "SRC..." */
static void positional_text(const struct cli_option *positional, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s%s%s%s", positional->required ? "" : "[", positional->name,
		 positional->many ? "..." : "", positional->required ? "" : "]");
}

void cli_usage_text(const struct cli_program *program, const struct cli_verb *verb, char *out, size_t out_bytes)
{
	const struct cli_option *positional = verb->positionals;
	struct cli_flat flat;
	char part[128];
	size_t used = (size_t)snprintf(out, out_bytes, "%s %s", program->name, verb->name);

	for (; positional && positional->name && used < out_bytes; positional++) {
		positional_text(positional, part, sizeof(part));
		used += (size_t)snprintf(out + used, out_bytes - used, " %s", part);
	}
	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.own_count && used < out_bytes; i++)
		if (flat.option[i]->required)
			used += (size_t)snprintf(out + used, out_bytes - used, " --%s %s", flat.option[i]->name,
						 cli_arg_name(flat.option[i]));
	if (used < out_bytes)
		snprintf(out + used, out_bytes - used, " [options]");
}

bool cli_first_of_its_word(const struct cli_program *program, const struct cli_verb *verb)
{
	size_t length = strcspn(verb->name, " ");

	for (const struct cli_verb *other = program->verbs; other != verb; other++)
		if (strcspn(other->name, " ") == length && !strncmp(other->name, verb->name, length))
			return false;
	return true;
}

int cli_verb_words(const char *name, char *const *word, int word_count)
{
	size_t first = strcspn(name, " ");

	if (!word_count || strncmp(word[0], name, first) || word[0][first])
		return 0;
	if (!name[first])
		return 1;
	return word_count > 1 && !strcmp(word[1], name + first + 1) ? 2 : 0;
}
