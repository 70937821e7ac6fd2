/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.c - from argv to a verb's function
 *
 * Finds the verb, walks over its arguments, and lets cli_value.c fill the verb's struct.
 * The first thing that is wrong ends it with one line and a hint; nothing has been done by
 * then, for the verb's function runs only on a command line that is right as a whole.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/cli_private.h"
#include "tools/common/signals.h"

#define WHY_BYTES 320

struct common_options {
	bool quiet, verbose, help;
};

static const struct cli_option common_table[] = {
	{.name = "quiet",
	 .short_name = 'q',
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct common_options, quiet),
	 .help = "warnings and errors only"},
	{.name = "verbose",
	 .short_name = 'v',
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct common_options, verbose),
	 .help = "more notes",
	 .beside = true},
	{.name = "help",
	 .short_name = 'h',
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct common_options, help),
	 .help = "print this and exit"},
	{0},
};

struct parse {
	const struct cli_program *program;
	const struct cli_verb *verb; /* NULL before it is known */
	struct cli_flat flat;
	struct common_options common;
	void *options;	    /* the verb's struct */
	uint64_t given;	    /* bit i: flat.option[i]; bit flat.count + i: positional i */
	const char **words; /* the positional arguments; room for argc */
	size_t word_count;
	size_t argc;	    /* more values than that no option has */
};

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

static int vmisuse(const struct cli_program *program, const struct cli_verb *verb, const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	fail(EXIT_USAGE, "%s", text);
	hint("try '%s%s%s --help'", program->name, verb ? " " : "", verb ? verb->name : "");
	return EXIT_USAGE;
}

MESSAGE_PRINTF(2, 3) static int misuse(const struct parse *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmisuse(p->program, p->verb, fmt, ap);
	va_end(ap);
	return EXIT_USAGE;
}

int cli_misuse(const struct cli_args *args, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmisuse(args->program, args->verb, fmt, ap);
	va_end(ap);
	return EXIT_USAGE;
}

bool cli_given(const struct cli_args *args, const char *name)
{
	const struct cli_option *positional = args->verb->positionals;
	struct cli_flat flat;

	cli_flatten(args->verb, &flat);
	for (unsigned i = 0; i < flat.count; i++)
		if (strcmp(flat.option[i]->name, name) == 0)
			return args->given >> i & 1;
	for (unsigned i = flat.count; positional && positional->name; i++, positional++)
		if (strcmp(positional->name, name) == 0)
			return args->given >> i & 1;
	assert(!"the name is in the verb's tables");
	return false;
}

/* One more value of an option that may be repeated; free_lists() gives its memory back. */
static int add_value(const struct parse *p, const struct cli_option *option, const char *typed, const char *value)
{
	struct cli_strings *list = (struct cli_strings *)(void *)((char *)p->options + option->offset);
	const char **items = list->count ? (const char **)(uintptr_t)list->items : calloc(p->argc + 1, sizeof(*items));

	if (!items)
		return fail(EXIT_IO, "out of memory");
	list->items = items;
	if (!value[0])
		return misuse(p, "%s '': must not be empty", typed);
	items[list->count++] = value;
	return EXIT_DONE;
}

static void free_lists(const struct parse *p)
{
	struct cli_strings list;

	for (unsigned i = 0; p->options && i < p->flat.own_count; i++) {
		if (!p->flat.option[i]->many)
			continue;
		memcpy(&list, (const char *)p->options + p->flat.option[i]->offset, sizeof(list));
		free((void *)(uintptr_t)list.items);
	}
}

/* Set one option.  `typed` is how the user wrote it: "--out", "-o".  `value` is NULL if there is none. */
static int set_option(struct parse *p, unsigned idx, const char *typed, const char *value)
{
	const struct cli_option *option = p->flat.option[idx];
	void *options = idx < p->flat.own_count ? p->options : &p->common;
	char why[WHY_BYTES];

	if (p->given >> idx & 1 && !option->many)
		return misuse(p, "%s is given twice", typed);
	p->given |= UINT64_C(1) << idx;
	if (option->kind == CLI_FLAG) {
		if (value)
			return misuse(p, "%s takes no value, got '%s'", typed, value);
		*(bool *)((char *)options + option->offset) = true;
	} else if (!value) {
		return misuse(p, "%s needs a value: %s %s", typed, typed, cli_arg_name(option));
	} else if (option->many) {
		return add_value(p, option, typed, value);
	} else if (!cli_value_set(option, value, options, why, sizeof(why))) {
		return misuse(p, "%s %s: %s", typed, value[0] ? value : "''", why);
	}
	return EXIT_DONE;
}

/* The argument after an option that needs a value; another option in its place was hardly meant as one. */
static int set_from_next(struct parse *p, unsigned idx, const char *typed, char ***argv)
{
	const char *next = (*argv)[1];

	if (next && next[0] == '-' && next[1] && !(next[1] >= '0' && next[1] <= '9'))
		return misuse(p, "%s needs a value: %s %s ('%s' looks like an option)", typed, typed,
			      cli_arg_name(p->flat.option[idx]), next);
	if (next)
		(*argv)++;
	return set_option(p, idx, typed, next);
}

static int unknown_long(const struct parse *p, const char *name)
{
	const char *candidates[CLI_OPTIONS_MAX];
	int nearest;

	for (unsigned i = 0; i < p->flat.count; i++)
		candidates[i] = p->flat.option[i]->name;
	nearest = cli_nearest(name, candidates, p->flat.count);
	if (nearest < 0)
		return misuse(p, "unknown option '--%s'", name);
	return misuse(p, "unknown option '--%s'; did you mean '--%s'?", name, candidates[nearest]);
}

/* --name, --name=value, --name value: **argv is the word itself and may move to its value. */
static int take_long(struct parse *p, char ***argv)
{
	const char *word = **argv;
	size_t length = strcspn(word, "=");
	char typed[64];

	snprintf(typed, sizeof(typed), "%.*s", (int)(length < sizeof(typed) ? length : sizeof(typed) - 1), word);
	for (unsigned i = 0; i < p->flat.count; i++) {
		if (strcmp(p->flat.option[i]->name, typed + 2) != 0)
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
static int take_short(struct parse *p, char ***argv)
{
	for (const char *at = **argv + 1; *at; at++) {
		char typed[] = {'-', *at, 0};
		unsigned i = 0;
		int rc;

		while (i < p->flat.count && p->flat.option[i]->short_name != *at)
			i++;
		if (i == p->flat.count)
			return misuse(p, "unknown option '%s'%s%s%s", typed, at[1] || at > **argv + 1 ? " in '" : "",
				      at[1] || at > **argv + 1 ? **argv : "", at[1] || at > **argv + 1 ? "'" : "");
		if (p->flat.option[i]->kind != CLI_FLAG)
			return at[1] ? set_option(p, i, typed, at + 1) : set_from_next(p, i, typed, argv);
		rc = set_option(p, i, typed, NULL);
		if (rc || p->common.help)
			return rc;
	}
	return EXIT_DONE;
}

static int take_words(struct parse *p, char **argv)
{
	bool options_end = false;
	int rc = EXIT_DONE;

	for (; *argv && !rc && !p->common.help; argv++) {
		if (options_end || (*argv)[0] != '-' || !(*argv)[1])
			p->words[p->word_count++] = *argv;
		else if (strcmp(*argv, "--") == 0)
			options_end = true;
		else if ((*argv)[1] == '-')
			rc = take_long(p, &argv);
		else
			rc = take_short(p, &argv);
	}
	return rc;
}

static int set_positionals(struct parse *p)
{
	const struct cli_option *positional = p->verb->positionals;
	size_t used = 0;
	char why[WHY_BYTES];

	for (unsigned i = p->flat.count; positional && positional->name; i++, positional++) {
		const char *word = p->words[used];

		if (used == p->word_count) {
			if (positional->required)
				return misuse(p, "%s is missing", positional->name);
			continue;
		}
		p->given |= UINT64_C(1) << i;
		if (positional->many) {
			struct cli_strings all = {p->words + used, p->word_count - used};

			memcpy((char *)p->options + positional->offset, &all, sizeof(all));
			return EXIT_DONE;
		}
		if (!cli_value_set(positional, word, p->options, why, sizeof(why)))
			return misuse(p, "%s %s: %s", positional->name, word[0] ? word : "''", why);
		used++;
	}
	if (used < p->word_count)
		return misuse(p, "unexpected argument '%s'", p->words[used]);
	return EXIT_DONE;
}

static void set_defaults(struct parse *p)
{
	const struct cli_option *positional = p->verb->positionals;
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

/* Fill in all of `p` from the words after the verb.  EXIT_DONE with p->common.help: show that and stop. */
static int parse_words(struct parse *p, char **argv)
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
		if (p->flat.option[i]->required && !(p->given >> i & 1))
			return misuse(p, "--%s %s is missing", p->flat.option[i]->name,
				      cli_arg_name(p->flat.option[i]));
	if (p->common.quiet && p->common.verbose)
		return misuse(p, "--quiet and --verbose exclude each other");
	return EXIT_DONE;
}

static int run_verb(struct parse *p, int argc, char **argv)
{
	struct cli_args args = {.program = p->program, .verb = p->verb};
	int rc;

	cli_flatten(p->verb, &p->flat);
	p->options = calloc(1, p->verb->options_bytes + 1); /* calloc(1, 0) may be NULL */
	p->words = calloc((size_t)argc + 1, sizeof(*p->words));
	p->argc = (size_t)argc;
	if (!p->options || !p->words) {
		rc = fail(EXIT_IO, "out of memory");
		goto out;
	}
	rc = parse_words(p, argv);
	if (rc)
		goto out;
	if (p->common.help) {
		cli_help_verb(stdout, p->program, p->verb);
		goto out;
	}
	message_level(p->common.quiet ? MESSAGE_QUIET : p->common.verbose ? MESSAGE_VERBOSE : MESSAGE_NORMAL);
	args.options = p->options;
	args.given = p->given;
	rc = p->verb->run(&args);
out:
	free_lists(p);
	free(p->words);
	free(p->options);
	return rc;
}

/* Does a verb's name stand at argv[1], or at argv[1] and argv[2]?  Returns how many words, or 0. */
static int verb_words(const char *name, char **argv)
{
	size_t first = strcspn(name, " ");

	if (strncmp(argv[1], name, first) != 0 || argv[1][first])
		return 0;
	if (!name[first])
		return 1;
	return argv[2] && strcmp(argv[2], name + first + 1) == 0 ? 2 : 0;
}

static int unknown_verb(const struct parse *p, char **argv)
{
	const char *candidates[CLI_OPTIONS_MAX];
	size_t count = 0, length = strlen(argv[1]);
	bool is_first_word = false;
	char typed[128];
	int nearest;

	for (const struct cli_verb *verb = p->program->verbs; verb->name && count < CLI_OPTIONS_MAX; verb++) {
		candidates[count++] = verb->name;
		is_first_word |= strncmp(verb->name, argv[1], length) == 0 && verb->name[length] == ' ';
	}
	if (is_first_word && argv[2] && argv[2][0] != '-')
		snprintf(typed, sizeof(typed), "%s %s", argv[1], argv[2]);
	else
		snprintf(typed, sizeof(typed), "%s", argv[1]);
	nearest = cli_nearest(typed, candidates, count);
	if (nearest < 0)
		return misuse(p, "unknown verb '%s'", typed);
	return misuse(p, "unknown verb '%s'; did you mean '%s'?", typed, candidates[nearest]);
}

static int print_completion(const struct parse *p, const char *shell)
{
	if (shell && strcmp(shell, "bash") == 0)
		cli_complete_bash(stdout, p->program);
	else if (shell && strcmp(shell, "zsh") == 0)
		cli_complete_zsh(stdout, p->program);
	else if (shell && strcmp(shell, "fish") == 0)
		cli_complete_fish(stdout, p->program);
	else
		return misuse(p, "--print-completion %s: must be bash, zsh or fish", shell ? shell : "''");
	return EXIT_DONE;
}

/* What may stand in a verb's place. */
static int program_option(const struct parse *p, char **argv)
{
	static const char *const candidates[] = {"--help", "--version"};
	const char *word = argv[1];
	int nearest;

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		cli_help_program(stdout, p->program);
	else if (strcmp(word, "--version") == 0)
		p->program->print_version(stdout);
	else if (strcmp(word, "--print-man") == 0)
		cli_man(stdout, p->program);
	else if (strncmp(word, "--print-completion", 18) == 0 && (!word[18] || word[18] == '='))
		return print_completion(p, word[18] ? word + 19 : argv[2]);
	else if ((nearest = cli_nearest(word, candidates, 2)) >= 0)
		return misuse(p, "unknown option '%s'; did you mean '%s'?", word, candidates[nearest]);
	else
		return misuse(p, "'%s' stands where a verb is expected; options follow the verb", word);
	return EXIT_DONE;
}

/* The first verb of two words that begins with argv[1], if argv[2] asks for help; else NULL. */
static const struct cli_verb *verb_to_explain(const struct cli_program *program, char **argv)
{
	size_t length = strlen(argv[1]);

	if (!argv[2] || (strcmp(argv[2], "--help") != 0 && strcmp(argv[2], "-h") != 0))
		return NULL;
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (strncmp(verb->name, argv[1], length) == 0 && verb->name[length] == ' ')
			return verb;
	return NULL;
}

static int dispatch(const struct cli_program *program, int argc, char **argv)
{
	struct parse p = {.program = program};
	int words = 0;

	if (argc < 2)
		return misuse(&p, "a verb is missing");
	if (argv[1][0] == '-')
		return program_option(&p, argv);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		int these = verb_words(verb->name, argv);

		if (these > words) {
			words = these;
			p.verb = verb;
		}
	}
	if (!p.verb) {
		p.verb = verb_to_explain(program, argv);
		words = 1;
	}
	if (!p.verb)
		return unknown_verb(&p, argv);
	return run_verb(&p, argc, argv + 1 + words);
}

int cli_main(const struct cli_program *program, int argc, char **argv)
{
	int exit_code, stdout_code;

	reserve_standard_descriptors();
	message_start(program->name, MESSAGE_NORMAL);
	signals_start();
	exit_code = dispatch(program, argc, argv);
	stdout_code = finish_stdout();
	return exit_code ? exit_code : stdout_code;
}
