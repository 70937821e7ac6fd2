/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_check.h - are a tool's tables in order: names unique, defaults valid, topics known, no --help
 * wider than a screen?
 *
 * Mistakes in a table are the programmer's, so the tools do not look for them.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/common/cli.h"
#include "tools/common/cli_private.h"

#define HELP_COLUMNS_MAX 80

/* Letters, digits and dashes (and what `also` allows): safe in every shell without quotes. */
static bool is_name(const char *text, const char *also)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	if (!text[0] || text[0] == '-')
		return false;
	for (; *text; text++)
		if (!strchr(allowed, *text) && !strchr(also, *text))
			return false;
	return true;
}

static const char *check_choices(const struct cli_option *option)
{
	const char *choice;
	unsigned count = 0;
	size_t length;

	if (!option->choices || !is_name(option->choices, "|"))
		return "choices are a|b of letters, digits and dashes";
	for (; (length = cli_choice(option->choices, count, &choice)); count++)
		if (length > 31)
			return "a choice has more than 31 characters";
	return count >= 2 && count <= CLI_OPTIONS_MAX ? NULL : "there are 2 to 64 choices, none empty";
}

static const char *check_option(const struct cli_option *option, const struct cli_verb *verb)
{
	_Alignas(16) char scratch[64];
	struct cli_option alone = *option;
	char why[320];

	alone.offset = 0;
	if (!option->help)
		return "help is missing";
	if (option->help[0] && option->help[strlen(option->help) - 1] == '.')
		return "help ends with a full stop";
	if (option->offset >= verb->options_bytes)
		return "offset lies outside of options_bytes";
	if (option->kind == CLI_CHOICE && check_choices(option))
		return check_choices(option);
	if (option->max && option->max < option->min)
		return "max is below min";
	if (option->default_value && option->kind == CLI_FLAG)
		return "a flag has no default_value";
	if (option->default_value && option->required)
		return "what is required has no default";
	if (option->default_value && !cli_value_set(&alone, option->default_value, scratch, why, sizeof(why)))
		return "default_value cannot be parsed";
	return NULL;
}

static bool is_topic(const struct cli_program *program, const char *name)
{
	const struct cli_topic *t = program->topics;

	while (t && t->name && strcmp(t->name, name))
		t++;
	return t && t->name;
}

static const char *check_topic(const struct cli_program *program, const struct cli_option *option, bool has_topics)
{
	if (has_topics != !!option->topic)
		return "all options of a verb have a topic, or none";
	if (option->topic && !is_topic(program, option->topic))
		return "the topic is not one of the program's";
	if (option->often && !option->topic)
		return "often is for verbs with topics";
	for (unsigned t = 0; t < CLI_KEY_TABLES_MAX && option->keys[t]; t++)
		for (const struct cli_key *key = option->keys[t]; key->name; key++)
			if (key->help && (!key->help[0] || key->help[strlen(key->help) - 1] == '.'))
				return "a key has help, without a full stop";
	return NULL;
}

static const char *check_options(const struct cli_program *program, const struct cli_verb *verb, const char **name)
{
	bool has_topics = cli_has_topic(verb, NULL);
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	if (flat.count + 8 > CLI_OPTIONS_MAX) /* leaves bits for positionals */
		return "more than 56 options";
	for (unsigned i = 0; i < flat.count; i++) {
		const struct cli_option *option = flat.option[i];
		const char *wrong = i < flat.own_count ? check_option(option, verb) : NULL;

		*name = option->name;
		if (!wrong && i < flat.own_count)
			wrong = check_topic(program, option, has_topics);
		if (wrong)
			return wrong;
		if (!is_name(option->name, "") || strlen(option->name) > 40)
			return "an option's name is lower case letters, digits and dashes, at most 40";
		if (option->many &&
		    (option->kind != CLI_STRING || option->default_value || option->required || option->short_name))
			return "an option that may be repeated is a string, has no letter and no default, and may be "
			       "left out";
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(flat.option[k]->name, option->name) ||
			    (option->short_name && flat.option[k]->short_name == option->short_name))
				return "the name or its letter is taken";
	}
	return NULL;
}

static const char *check_positionals(const struct cli_verb *verb, const char **name)
{
	bool optional_seen = false, many_seen = false;
	unsigned count = 0;

	for (const struct cli_option *p = verb->positionals; p && p->name; p++) {
		const char *wrong = check_option(p, verb);

		*name = p->name;
		if (wrong)
			return wrong;
		if (p->kind == CLI_FLAG)
			return "a positional argument is no flag";
		if (p->many && p->kind != CLI_STRING && p->kind != CLI_FILE && p->kind != CLI_DIR)
			return "many is for strings, files and directories";
		if (many_seen || (optional_seen && p->required) || ++count > 8)
			return "many comes last, optional ones after required ones, and there are at most 8";
		optional_seen |= !p->required;
		many_seen |= p->many;
	}
	return NULL;
}

static const char *check_screen(const struct cli_program *program, const struct cli_verb *verb, const char *topic)
{
	char *text = NULL;
	size_t text_bytes = 0;
	const char *wrong = NULL;
	FILE *stream = open_memstream(&text, &text_bytes);

	if (!stream)
		return "out of memory";
	if (verb)
		cli_help_verb(stream, program, verb, topic);
	else
		cli_help_program(stream, program);
	if (fclose(stream) || !text)
		wrong = "out of memory";
	for (const char *line = text; !wrong && *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > HELP_COLUMNS_MAX)
			wrong = "--help is wider than 80 columns";
	free(text);
	return wrong;
}

static const char *check_text(const struct cli_text *text)
{
	if (!text->name)
		return "a verb has a text";
	if (!text->summary || !text->summary[0] || !text->description || !text->examples || !text->examples[0])
		return "a text has a summary, a description and an example";
	return NULL;
}

/* Of a verb, or of the program; the zeroed row if there is none. */
static const struct cli_text *find_text(const struct cli_program *program, const char *name)
{
	const struct cli_text *text = program->texts;

	while (text->name && strcmp(text->name, name))
		text++;
	return text;
}

static bool ends_word(char c)
{
	return !c || c == ' ';
}

static const char *check_verb(const struct cli_program *program, const struct cli_verb *verb, const char **name)
{
	const char *wrong;

	if (!is_name(verb->name, " ") || strchr(verb->name, ' ') != strrchr(verb->name, ' '))
		return "a verb is one word or two, of lower case letters, digits and dashes";
	if (!verb->run)
		return "a verb has a function";
	if (check_text(find_text(program, verb->name)))
		return check_text(find_text(program, verb->name));
	for (const struct cli_verb *other = program->verbs; other != verb; other++) {
		size_t shorter = strlen(other->name) < strlen(verb->name) ? strlen(other->name) : strlen(verb->name);

		if (!strncmp(other->name, verb->name, shorter) && ends_word(other->name[shorter]) &&
		    ends_word(verb->name[shorter]))
			return "a verb's name is the same as, or the first word of, another's";
	}
	wrong = check_options(program, verb, name);
	if (!wrong)
		wrong = check_positionals(verb, name);
	if (wrong)
		return wrong;
	*name = "--help";
	wrong = check_screen(program, verb, "");
	return wrong ? wrong : check_screen(program, verb, "all");
}

/* If not, `why` says what is wrong. */
static bool cli_check(const struct cli_program *program, char *why, size_t why_bytes)
{
	const char *wrong = NULL, *name = "";

	if (!program->name || !program->texts || !program->verbs || !program->verbs->name || !program->print_version) {
		snprintf(why, why_bytes, "a program has a name, texts, verbs and a version");
		return false;
	}
	for (const struct cli_text *text = program->texts; text->name; text++) {
		const struct cli_verb *verb = program->verbs;

		while (verb->name && strcmp(verb->name, text->name))
			verb++;
		if (text == program->texts ? strcmp(text->name, program->name) : !verb->name) {
			snprintf(why, why_bytes, "%s: a text without a verb", text->name);
			return false;
		}
	}
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		name = "";
		wrong = check_verb(program, verb, &name);
		if (wrong) {
			snprintf(why, why_bytes, "%s: %s: %s", verb->name, name, wrong);
			return false;
		}
	}
	wrong = check_screen(program, NULL, NULL);
	if (wrong)
		snprintf(why, why_bytes, "%s", wrong);
	return !wrong;
}
