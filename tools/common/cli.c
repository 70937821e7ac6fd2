/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.c - from argv to a verb's function
 *
 * Finds the verb, has its words taken apart, and runs it.  Its function runs only on a command line
 * that is right as a whole.
 */
#include "tools/common/cli.h"

#include <string.h>

#include "tools/common/cli_complete.h"
#include "tools/common/cli_help.h"
#include "tools/common/cli_man.h"
#include "tools/common/cli_nearest.h"
#include "tools/common/cli_parse.h"
#include "tools/common/exit_code.h"
#include "tools/common/signals.h"

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

static int print_completion(const struct cli_args *args, const char *shell)
{
	if (!cli_complete_script(stdout, args->program, shell ? shell : ""))
		return cli_misuse(args, "--print-completion %s: must be bash, zsh or fish", shell ? shell : "''");
	return EXIT_DONE;
}

/* What may stand in a verb's place. */
static int program_option(const struct cli_args *args, int argc, char **argv)
{
	static const char *const candidates[] = {"--help", "--version"};
	static char page[1 << 19]; /* all of it is one write: a signal ends the wait for its reader once */
	const char *word = argv[1];
	int nearest;

	setvbuf(stdout, page, _IOFBF, sizeof(page));
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		cli_help_program(stdout, args->program);
	else if (!strcmp(word, "--version"))
		args->program->print_version(stdout);
	else if (!strcmp(word, "--print-man"))
		cli_man(stdout, args->program);
	else if (!strcmp(word, "--complete"))
		cli_complete(stdout, args->program, argv + 2, argc - 2);
	else if (!strncmp(word, "--print-completion", 18) && (!word[18] || word[18] == '='))
		return print_completion(args, word[18] ? word + 19 : argv[2]);
	else if ((nearest = cli_nearest(word, candidates, 2)) >= 0)
		return cli_misuse(args, "unknown option '%s'; did you mean '%s'?", word, candidates[nearest]);
	else
		return cli_misuse(args, "'%s' is not a verb; write the verb first and its options after it", word);
	return EXIT_DONE;
}

/* The first verb of two words that begins with argv[1], if argv[2] asks for help; else NULL. */
static const struct cli_verb *verb_to_explain(const struct cli_program *program, char **argv)
{
	size_t length = strlen(argv[1]);

	if (!argv[2] || (strcmp(argv[2], "--help") && strcmp(argv[2], "-h")))
		return NULL;
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (!strncmp(verb->name, argv[1], length) && verb->name[length] == ' ')
			return verb;
	return NULL;
}

static int run_verb(const struct cli_args *args, int argc, char **argv)
{
	struct cli_parse p = {.args = *args};
	int rc = cli_parse(&p, argc, argv);

	if (!rc && p.common.help) {
		cli_help_verb(stdout, args->program, args->verb);
	} else if (!rc) {
		message_level(p.common.quiet ? MESSAGE_QUIET : p.common.verbose ? MESSAGE_VERBOSE : MESSAGE_NORMAL);
		rc = args->verb->run(&p.args);
	}
	cli_parse_free(&p);
	return rc;
}

static int dispatch(const struct cli_program *program, int argc, char **argv)
{
	struct cli_args args = {.program = program};
	int words = 0;

	if (argc < 2)
		return cli_misuse(&args, "a verb is missing");
	if (argv[1][0] == '-')
		return program_option(&args, argc, argv);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		int these = cli_verb_words(verb->name, argv + 1, argc - 1);

		if (these > words) {
			words = these;
			args.verb = verb;
		}
	}
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
	message_start(program->name, MESSAGE_NORMAL);
	signals_start();
	exit_code = dispatch(program, argc, argv);
	stdout_code = finish_stdout();
	/* A verb that saw stdout fail says EXIT_IO; that a signal was the reason is known here. */
	return exit_code && (exit_code != EXIT_IO || stdout_code != EXIT_INTERRUPTED) ? exit_code : stdout_code;
}
