/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.c - from argv to a verb's function
 *
 * Finds the verb, walks over its words, lets cli_value.c fill its struct, and runs it.  Its function
 * runs only on a command line that is right as a whole.
 */
#include "tools/common/cli_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/signals.h"

#define WHY_BYTES 320

/* ---- questions to the tables ---- */

/* clang-format off */
static const struct cli_option common_table[] = {
	{.name = "quiet", .short_name = 'q', .kind = CLI_FLAG, .offset = offsetof(struct cli_common, quiet),
	 .help = "print warnings and errors only"},
	{.name = "verbose", .short_name = 'v', .kind = CLI_FLAG, .offset = offsetof(struct cli_common, verbose),
	 .help = "print more details"},
	{.name = "help", .short_name = 'h', .kind = CLI_HELP, .offset = offsetof(struct cli_common, help),
	 .help = "print help and exit"},
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
	if (option->kind == CLI_FLAG || option->kind == CLI_HELP)
		return NULL;
	if (option->arg_name)
		return option->arg_name;
	return option->kind == CLI_CHOICE ? option->choices : "VALUE";
}

void cli_usage_text(const struct cli_program *program, const struct cli_verb *verb, char *out, size_t out_bytes)
{
	const struct cli_option *positional = verb->positionals;
	struct cli_flat flat;
	size_t used = (size_t)snprintf(out, out_bytes, "%s %s", program->name, verb->name);

	for (; positional && positional->name && used < out_bytes; positional++) /* " SRC", " [SRC]", " SRC..." */
		used += (size_t)snprintf(out + used, out_bytes - used, " %s%s%s%s", positional->required ? "" : "[",
					 positional->name, positional->many ? "..." : "",
					 positional->required ? "" : "]");
	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.own_count && used < out_bytes; i++)
		if (flat.option[i]->required)
			used += (size_t)snprintf(out + used, out_bytes - used, " --%s %s", flat.option[i]->name,
						 cli_arg_name(flat.option[i]));
	if (used < out_bytes)
		snprintf(out + used, out_bytes - used, " [options]");
}

const struct cli_verb *cli_find_verb(const struct cli_program *program, char *const *word, int word_count, int *taken)
{
	const struct cli_verb *found = NULL;

	*taken = 0;
	for (const struct cli_verb *verb = program->verbs; word_count && verb->name; verb++) {
		size_t first = strcspn(verb->name, " ");
		int words = verb->name[first] ? 2 : 1;

		if (words > word_count || words <= *taken || strncmp(word[0], verb->name, first) || word[0][first] ||
		    (words == 2 && strcmp(word[1], verb->name + first + 1)))
			continue;
		*taken = words;
		found = verb;
	}
	return found;
}

/* ---- what a verb's function may ask and say ---- */

/* The topic of the option that a mistake begins with, if the short help does not explain it; or NULL. */
static const char *topic_of_mistake(const struct cli_verb *verb, const char *text)
{
	size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
	struct cli_flat flat;

	if (!verb || strncmp(text, "--", 2))
		return NULL;
	cli_flatten(verb, &flat);
	for (unsigned i = 0; i < flat.own_count; i++) {
		const struct cli_option *option = flat.option[i];

		if (strlen(option->name) + 2 == bytes && !strncmp(option->name, text + 2, bytes - 2) &&
		    (option->keys[0] || (!option->often && !option->required)))
			return option->topic;
	}
	return NULL;
}

int cli_misuse(const struct cli_args *args, const char *fmt, ...)
{
	const char *verb = args->verb ? args->verb->name : "", *topic;
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(EXIT_USAGE, "%s", text);
	topic = topic_of_mistake(args->verb, text);
	hint("try '%s%s%s --help%s%s'", args->program->name, verb[0] ? " " : "", verb, topic ? "=" : "",
	     topic ? topic : "");
	return EXIT_USAGE;
}

bool cli_given(const struct cli_args *args, const char *name)
{
	const struct cli_option *positional = args->verb->positionals;
	struct cli_flat flat;

	cli_flatten(args->verb, &flat);
	for (unsigned i = 0; i < flat.count; i++)
		if (!strcmp(flat.option[i]->name, name))
			return args->given >> i & 1;
	for (unsigned i = flat.count; positional && positional->name; i++, positional++)
		if (!strcmp(positional->name, name))
			return args->given >> i & 1;
	assert(!"the name is in the verb's tables");
	return false;
}

/* ---- from the words behind a verb to the verb's struct ---- */

struct cli_parse {
	struct cli_args args;	  /* program and verb are the caller's; the others are filled in */
	struct cli_common common; /* with help, nothing else counts */
	struct cli_flat flat;
	void *options;	    /* the verb's struct */
	const char **words; /* the positional arguments; room for argc */
	size_t word_count;
	size_t argc; /* the most values that an option can have */
};

/* One more value of an option that may be repeated; parse_free() frees it. */
static int add_value(const struct cli_parse *p, const struct cli_option *option, const char *typed, const char *value)
{
	struct cli_strings *list = (struct cli_strings *)(void *)((char *)p->options + option->offset);
	const char **items = list->count ? (const char **)(uintptr_t)list->items : xcalloc(p->argc + 1, sizeof(*items));
	char why[WHY_BYTES];

	list->items = items;
	if (!value[0])
		return cli_misuse(&p->args, "%s '': must not be empty", typed);
	if (!cli_value_is_here(option, value, why, sizeof(why)))
		return cli_misuse(&p->args, "%s %s: %s", typed, value, why);
	items[list->count++] = value;
	return EXIT_DONE;
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
	} else if (option->kind == CLI_HELP) {
		*(const char **)(void *)((char *)options + option->offset) = value ? value : "";
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

/* --name, --name=value, --name value: **argv is the word itself and may move to its value. */
static int parse_long(struct cli_parse *p, char ***argv)
{
	const char *word = **argv, *candidates[CLI_OPTIONS_MAX];
	size_t length = strcspn(word, "=");
	char typed[64];
	int nearest;

	snprintf(typed, sizeof(typed), "%.*s", (int)(length < sizeof(typed) ? length : sizeof(typed) - 1), word);
	for (unsigned i = 0; i < p->flat.count; i++) {
		candidates[i] = p->flat.option[i]->name;
		if (strcmp(candidates[i], typed + 2))
			continue;
		if (word[length])
			return set_option(p, i, typed, word + length + 1);
		if (!cli_arg_name(p->flat.option[i]))
			return set_option(p, i, typed, NULL);
		return set_from_next(p, i, typed, argv);
	}
	nearest = cli_nearest(typed + 2, candidates, p->flat.count);
	if (nearest < 0)
		return cli_misuse(&p->args, "unknown option '%s'", typed);
	return cli_misuse(&p->args, "unknown option '%s'; did you mean '--%s'?", typed, candidates[nearest]);
}

/* -v, -vn, -j4, -j 4, -vj4 */
static int parse_short(struct cli_parse *p, char ***argv)
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
		if (cli_arg_name(p->flat.option[i]))
			return at[1] ? set_option(p, i, typed, at + 1) : set_from_next(p, i, typed, argv);
		rc = set_option(p, i, typed, NULL);
		if (rc || p->common.help)
			return rc;
	}
	return EXIT_DONE;
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
	assert(all_set); /* a test of the tables sees to it */
	(void)all_set;
}

/*
 * Fill in all of `p` from the words after the verb.  EXIT_DONE with p->common.help: show that and
 * stop.
 */
static int parse_words(struct cli_parse *p, char **argv)
{
	bool options_end = false;
	int rc = EXIT_DONE;

	set_defaults(p);
	for (; *argv && !rc && !p->common.help; argv++) {
		if (options_end || (*argv)[0] != '-' || !(*argv)[1])
			p->words[p->word_count++] = *argv;
		else if (!strcmp(*argv, "--"))
			options_end = true;
		else if ((*argv)[1] == '-')
			rc = parse_long(p, &argv);
		else
			rc = parse_short(p, &argv);
	}
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

static void parse_free(struct cli_parse *p)
{
	struct cli_strings list;

	for (unsigned i = 0; i < p->flat.own_count; i++) {
		if (!p->flat.option[i]->many)
			continue;
		memcpy(&list, (const char *)p->options + p->flat.option[i]->offset, sizeof(list));
		free((void *)(uintptr_t)list.items);
	}
	free(p->words);
	free(p->options);
}

/* ---- from argv to the verb ---- */

static int unknown_verb(const struct cli_args *args, char **argv)
{
	const char *candidates[CLI_OPTIONS_MAX];
	size_t count = 0, length = strlen(argv[1]);
	bool is_first_word = false;
	char typed[128];
	int nearest;

	for (const struct cli_verb *verb = args->program->verbs; verb->name && count < CLI_OPTIONS_MAX; verb++) {
		candidates[count++] = verb->name;
		is_first_word |= !strncmp(verb->name, argv[1], length) && verb->name[length] == ' ';
	}
	if (is_first_word && argv[2] && argv[2][0] != '-')
		snprintf(typed, sizeof(typed), "%s %s", argv[1], argv[2]);
	else
		snprintf(typed, sizeof(typed), "%s", argv[1]);
	nearest = cli_nearest(typed, candidates, count);
	if (nearest < 0)
		return cli_misuse(args, "unknown verb '%s'", typed);
	return cli_misuse(args, "unknown verb '%s'; did you mean '%s'?", typed, candidates[nearest]);
}

/* What may stand in a verb's place. */
static int program_option(const struct cli_args *args, int argc, char **argv)
{
	static const char *const candidates[] = {"--help", "--version"};
	static char page[1 << 19]; /* all of it is one write: a signal ends the wait for its reader once */
	const char *word = argv[1], *shell = argv[2] ? argv[2] : "";
	int nearest;

	setvbuf(stdout, page, _IOFBF, sizeof(page));
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		cli_help_program(stdout, args->program);
	} else if (!strcmp(word, "--version")) {
		args->program->print_version(stdout);
	} else if (!strcmp(word, "--print-man")) {
		cli_man(stdout, args->program);
	} else if (!strcmp(word, "--complete")) {
		cli_complete(stdout, args->program, argv + 2, argc - 2);
	} else if (!strncmp(word, "--print-completion", 18) && (!word[18] || word[18] == '=')) {
		shell = word[18] ? word + 19 : shell;
		if (!cli_complete_script(stdout, args->program, shell))
			return cli_misuse(args, "--print-completion %s: must be bash, zsh or fish",
					  shell[0] ? shell : "''");
	} else if (!strncmp(word, "--help=", 7)) {
		return cli_misuse(args, "%s: topics belong to a verb; write the verb first", word);
	} else if ((nearest = cli_nearest(word, candidates, 2)) >= 0) {
		return cli_misuse(args, "unknown option '%s'; did you mean '%s'?", word, candidates[nearest]);
	} else {
		return cli_misuse(args, "'%s' is not a verb; write the verb first and its options after it", word);
	}
	return EXIT_DONE;
}

/* The first verb of two words that begins with argv[1], if argv[2] asks for help; else NULL. */
static const struct cli_verb *verb_to_explain(const struct cli_program *program, char **argv)
{
	size_t length = strlen(argv[1]);

	if (!argv[2] || (strcmp(argv[2], "-h") && strcmp(argv[2], "--help") && strncmp(argv[2], "--help=", 7)))
		return NULL;
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (!strncmp(verb->name, argv[1], length) && verb->name[length] == ' ')
			return verb;
	return NULL;
}

static int help(const struct cli_args *args, const char *topic)
{
	const struct cli_topic *topics = args->program->topics;
	const char *candidates[CLI_OPTIONS_MAX];
	char list[256] = "";
	size_t count = 0, used = 0;
	int nearest;

	if (!topic[0] || !strcmp(topic, "all") || cli_has_topic(args->verb, topic)) {
		cli_help_verb(stdout, args->program, args->verb, topic);
		return EXIT_DONE;
	}
	if (!cli_has_topic(args->verb, NULL))
		return cli_misuse(args, "--help=%s: the help of this verb is one page without topics", topic);
	for (; topics->name; topics++) {
		if (!cli_has_topic(args->verb, topics->name))
			continue;
		candidates[count++] = topics->name;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s, ", topics->name);
	}
	list[used - 2] = 0;
	nearest = cli_nearest(topic, candidates, count);
	return cli_misuse(args, "--help=%s: the topics are %s and all%s%s%s", topic, list,
			  nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : candidates[nearest],
			  nearest < 0 ? "" : "'?");
}

static int run_verb(const struct cli_args *args, int argc, char **argv)
{
	struct cli_parse p = {.args = *args, .argc = (size_t)argc};
	int rc;

	cli_flatten(args->verb, &p.flat);
	p.options = xcalloc(1, args->verb->options_bytes);
	p.words = xcalloc((size_t)argc + 1, sizeof(*p.words));
	p.args.options = p.options;
	rc = parse_words(&p, argv);
	if (!rc && p.common.help) {
		rc = help(args, p.common.help);
	} else if (!rc) {
		message_level(p.common.quiet ? MESSAGE_QUIET : p.common.verbose ? MESSAGE_VERBOSE : MESSAGE_NORMAL);
		rc = args->verb->run(&p.args);
	}
	parse_free(&p);
	return rc;
}

static int dispatch(const struct cli_program *program, int argc, char **argv)
{
	struct cli_args args = {.program = program};
	int words;

	if (argc < 2)
		return cli_misuse(&args, "a verb is missing");
	if (argv[1][0] == '-')
		return program_option(&args, argc, argv);
	args.verb = cli_find_verb(program, argv + 1, argc - 1, &words);
	if (!args.verb) {
		args.verb = verb_to_explain(program, argv);
		words = 1;
	}
	if (!args.verb)
		return unknown_verb(&args, argv);
	return run_verb(&args, argc, argv + 1 + words);
}

int cli_main(const struct cli_program *program, int argc, char **argv)
{
	int exit_code, stdout_code;

	reserve_standard_descriptors();
	message_start(program->name);
	signals_start();
	exit_code = dispatch(program, argc, argv);
	stdout_code = finish_stdout();
	/* A verb that saw stdout fail says EXIT_IO; that a signal was the reason is known here. */
	return exit_code && (exit_code != EXIT_IO || stdout_code != EXIT_INTERRUPTED) ? exit_code : stdout_code;
}
