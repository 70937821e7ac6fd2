/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_parse.c - from the words behind a verb to the verb's struct
 *
 * Walks over the words, and lets cli_value.c fill the struct.
 */
#include "tools/common/cli_parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/cli_nearest.h"
#include "tools/common/cli_value.h"
#include "tools/common/exit_code.h"

#define WHY_BYTES 320

/* One more value of an option that may be repeated; free_lists() frees it. */
static int add_value(const struct cli_parse *p, const struct cli_option *option, const char *typed, const char *value)
{
	struct cli_strings *list = (struct cli_strings *)(void *)((char *)p->options + option->offset);
	const char **items = list->count ? (const char **)(uintptr_t)list->items : calloc(p->argc + 1, sizeof(*items));
	char why[WHY_BYTES];

	if (!items)
		return fail(EXIT_IO, "out of memory");
	list->items = items;
	if (!value[0])
		return cli_misuse(&p->args, "%s '': must not be empty", typed);
	if (!cli_value_is_here(option, value, why, sizeof(why)))
		return cli_misuse(&p->args, "%s %s: %s", typed, value, why);
	items[list->count++] = value;
	return EXIT_DONE;
}

static void free_lists(const struct cli_parse *p)
{
	struct cli_strings list;

	for (unsigned i = 0; p->options && i < p->flat.own_count; i++) {
		if (!p->flat.option[i]->many)
			continue;
		memcpy(&list, (const char *)p->options + p->flat.option[i]->offset, sizeof(list));
		free((void *)(uintptr_t)list.items);
	}
}

/*
 * Set one option.  `typed` is how the user wrote it: "--out", "-o".  `value` is NULL if there is
 * none.
 */
static int set_option(struct cli_parse *p, unsigned idx, const char *typed, const char *value)
{
	const struct cli_option *option = p->flat.option[idx];
	void *options = idx < p->flat.own_count ? p->options : &p->common;
	char why[WHY_BYTES];

	if (p->args.given >> idx & 1 && !option->many)
		return cli_misuse(&p->args, "%s is given twice", typed);
	p->args.given |= UINT64_C(1) << idx;
	if (option->kind == CLI_FLAG) {
		if (value)
			return cli_misuse(&p->args, "%s takes no value, got '%s'", typed, value);
		*(bool *)((char *)options + option->offset) = true;
	} else if (!value) {
		return cli_misuse(&p->args, "%s needs a value: %s %s", typed, typed, cli_arg_name(option));
	} else if (option->many) {
		return add_value(p, option, typed, value);
	} else if (!cli_value_set(option, value, options, why, sizeof(why))) {
		return cli_misuse(&p->args, "%s %s: %s", typed, value[0] ? value : "''", why);
	}
	return EXIT_DONE;
}

/*
 * The argument after an option that needs a value; another option in its place was hardly meant as
 * one.
 */
static int set_from_next(struct cli_parse *p, unsigned idx, const char *typed, char ***argv)
{
	const char *next = (*argv)[1];

	if (next && next[0] == '-' && next[1] && !(next[1] >= '0' && next[1] <= '9'))
		return cli_misuse(&p->args, "%s needs a value: %s %s ('%s' looks like an option)", typed, typed,
				  cli_arg_name(p->flat.option[idx]), next);
	if (next)
		(*argv)++;
	return set_option(p, idx, typed, next);
}

static int unknown_long(const struct cli_parse *p, const char *name)
{
	const char *candidates[CLI_OPTIONS_MAX];
	int nearest;

	for (unsigned i = 0; i < p->flat.count; i++)
		candidates[i] = p->flat.option[i]->name;
	nearest = cli_nearest(name, candidates, p->flat.count);
	if (nearest < 0)
		return cli_misuse(&p->args, "unknown option '--%s'", name);
	return cli_misuse(&p->args, "unknown option '--%s'; did you mean '--%s'?", name, candidates[nearest]);
}

/* --name, --name=value, --name value: **argv is the word itself and may move to its value. */
static int take_long(struct cli_parse *p, char ***argv)
{
	const char *word = **argv;
	size_t length = strcspn(word, "=");
	char typed[64];

	snprintf(typed, sizeof(typed), "%.*s", (int)(length < sizeof(typed) ? length : sizeof(typed) - 1), word);
	for (unsigned i = 0; i < p->flat.count; i++) {
		if (strcmp(p->flat.option[i]->name, typed + 2))
			continue;
		if (word[length])
			return set_option(p, i, typed, word + length + 1);
		if (p->flat.option[i]->kind == CLI_FLAG)
			return set_option(p, i, typed, NULL);
		return set_from_next(p, i, typed, argv);
	}
	return unknown_long(p, typed + 2);
}

/* -v, -vn, -j4, -j 4, -vj4 */
static int take_short(struct cli_parse *p, char ***argv)
{
	for (const char *at = **argv + 1; *at; at++) {
		char typed[] = {'-', *at, 0};
		unsigned i = 0;
		int rc;

		while (i < p->flat.count && p->flat.option[i]->short_name != *at)
			i++;
		if (i == p->flat.count && at == **argv + 1 && *at >= '0' && *at <= '9')
			return cli_misuse(&p->args, "'%s' is not an option, and a number here must be 0 or more",
					  **argv);
		if (i == p->flat.count)
			return cli_misuse(&p->args, "unknown option '%s'%s%s%s", typed,
					  at[1] || at > **argv + 1 ? " in '" : "",
					  at[1] || at > **argv + 1 ? **argv : "", at[1] || at > **argv + 1 ? "'" : "");
		if (p->flat.option[i]->kind != CLI_FLAG)
			return at[1] ? set_option(p, i, typed, at + 1) : set_from_next(p, i, typed, argv);
		rc = set_option(p, i, typed, NULL);
		if (rc || p->common.help)
			return rc;
	}
	return EXIT_DONE;
}

static int take_words(struct cli_parse *p, char **argv)
{
	bool options_end = false;
	int rc = EXIT_DONE;

	for (; *argv && !rc && !p->common.help; argv++) {
		if (options_end || (*argv)[0] != '-' || !(*argv)[1])
			p->words[p->word_count++] = *argv;
		else if (!strcmp(*argv, "--"))
			options_end = true;
		else if ((*argv)[1] == '-')
			rc = take_long(p, &argv);
		else
			rc = take_short(p, &argv);
	}
	return rc;
}

static int set_positionals(struct cli_parse *p)
{
	const struct cli_option *positional = p->args.verb->positionals;
	size_t used = 0;
	char why[WHY_BYTES];

	for (unsigned i = p->flat.count; positional && positional->name; i++, positional++) {
		const char *word = p->words[used];

		if (used == p->word_count) {
			if (positional->required)
				return cli_misuse(&p->args, "%s is missing", positional->name);
			continue;
		}
		p->args.given |= UINT64_C(1) << i;
		if (positional->many) {
			struct cli_strings all = {p->words + used, p->word_count - used};

			for (; used < p->word_count; used++)
				if (!cli_value_is_here(positional, p->words[used], why, sizeof(why)))
					return cli_misuse(&p->args, "%s %s: %s", positional->name, p->words[used], why);
			memcpy((char *)p->options + positional->offset, &all, sizeof(all));
			return EXIT_DONE;
		}
		if (!cli_value_set(positional, word, p->options, why, sizeof(why)))
			return cli_misuse(&p->args, "%s %s: %s", positional->name, word[0] ? word : "''", why);
		used++;
	}
	if (used < p->word_count)
		return cli_misuse(&p->args, "unexpected argument '%s'", p->words[used]);
	return EXIT_DONE;
}

static void set_defaults(struct cli_parse *p)
{
	const struct cli_option *positional = p->args.verb->positionals;
	char why[WHY_BYTES];
	bool all_set = true;

	for (unsigned i = 0; i < p->flat.own_count; i++)
		if (p->flat.option[i]->default_value)
			all_set &= cli_value_set(p->flat.option[i], p->flat.option[i]->default_value, p->options, why,
						 sizeof(why));
	for (; positional && positional->name; positional++)
		if (positional->default_value)
			all_set &= cli_value_set(positional, positional->default_value, p->options, why, sizeof(why));
	assert(all_set); /* cli_check() sees to it */
	(void)all_set;
}

/*
 * Fill in all of `p` from the words after the verb.  EXIT_DONE with p->common.help: show that and
 * stop.
 */
static int parse_words(struct cli_parse *p, char **argv)
{
	int rc;

	set_defaults(p);
	rc = take_words(p, argv);
	if (rc || p->common.help)
		return rc;
	rc = set_positionals(p);
	if (rc)
		return rc;
	for (unsigned i = 0; i < p->flat.own_count; i++)
		if (p->flat.option[i]->required && !(p->args.given >> i & 1))
			return cli_misuse(&p->args, "--%s %s is missing", p->flat.option[i]->name,
					  cli_arg_name(p->flat.option[i]));
	if (p->common.quiet && p->common.verbose)
		return cli_misuse(&p->args, "--quiet and --verbose exclude each other");
	return EXIT_DONE;
}

int cli_parse(struct cli_parse *p, int argc, char **argv)
{
	cli_flatten(p->args.verb, &p->flat);
	p->options = calloc(1, p->args.verb->options_bytes + 1); /* calloc(1, 0) may be NULL */
	p->words = calloc((size_t)argc + 1, sizeof(*p->words));
	p->argc = (size_t)argc;
	if (!p->options || !p->words)
		return fail(EXIT_IO, "out of memory");
	p->args.options = p->options;
	return parse_words(p, argv);
}

void cli_parse_free(struct cli_parse *p)
{
	free_lists(p);
	free(p->words);
	free(p->options);
}
