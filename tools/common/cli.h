/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - a tool's command line as tables
 *
 * A program is a table of verbs, a verb is tables of options and a function.  From the same tables
 * come parsing, --help, the man page (--print-man) and shell completion, so they cannot disagree.
 * What is longer than a line stands in docs/man, and is a table of texts here.  Tables of options end
 * with a zeroed row and may be shared between verbs:
 *
 *   struct pack_options { const char *out; uint64_t resize; int filter; ... };
 *   static const struct cli_option transform[] = {
 *           {.name = "resize", .kind = CLI_U64, .offset = offsetof(struct pack_options, resize),
 *            .arg_name = "N", .min = 1, .max = 65500, .help = "shorter side, in pixels"},
 *           {.name = "filter", .kind = CLI_CHOICE, .offset = offsetof(struct pack_options, filter),
 *            .choices = "bilinear|bicubic|lanczos|box", .default_value = "bilinear", .help = "resampling"},
 *           {0}};
 *
 * Each value is parsed straight into a zeroed struct of the verb's own, which its function finds in
 * args->options.  The user's words are checked here: an unknown verb or option suggests the
 * nearest, an option given twice is refused unless it is one for many values, a bad value is named
 * with its limit; all of that exits with EXIT_USAGE.  -h, -q and -v belong to every verb.
 *
 * A verb with many options gives each of them a topic of the program.  Its --help then shows only
 * the options that people need often, and names the topics; --help=TOPIC shows the options of one,
 * and --help=all shows every option.
 */
#ifndef SHARD_COMMON_CLI_H
#define SHARD_COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/common/message.h"

#define CLI_OPTIONS_MAX	   64 /* of a verb, positionals included: one bit each in cli_args.given */
#define CLI_TABLES_MAX	   6
#define CLI_KEY_TABLES_MAX 2

/* How a value is written, and the type of the struct's member that takes it. */
enum cli_kind {
	CLI_FLAG,	      /* bool: there or not */
	CLI_STRING,	      /* const char *, never empty; lives as long as argv */
	CLI_FILE,	      /* the same, completed as a file name */
	CLI_DIR,	      /* the same, completed as a directory */
	CLI_U64,	      /* uint64_t */
	CLI_SIZE,	      /* uint64_t, in bytes: 512, 64K, 64M, 1GiB, 2T; powers of 1024 */
	CLI_CHOICE,	      /* int: which of `choices`, from 0 */
	CLI_COUNT_OR_PERCENT, /* struct cli_amount: 5, 2%, 0.5% */
	CLI_PART,	      /* struct cli_part: k/n, k from 0 to n - 1 */
	CLI_HELP,	      /* const char *: "", or TOPIC of --help=TOPIC; of the common options only */
};

struct cli_amount {
	bool is_percent;
	uint64_t count;		    /* if it is not */
	uint32_t parts_per_million; /* if it is: 2% is 20,000 */
};

struct cli_part {
	uint64_t idx, count; /* count 0: not given */
};

struct cli_strings {
	const char *const *items; /* lives until the verb's function returns */
	size_t count;
};

/* A part of an option's value, such as max=N of --field; tables of keys end with a zeroed row. */
struct cli_key {
	const char *name;
	const char *arg_name; /* "N"; NULL: the key stands alone */
	const char *help;     /* as of an option; NULL: another table of keys explains it */
};

/* Options that belong together.  Tables of topics are in the order of --help=all. */
struct cli_topic {
	const char *name;    /* "fields", for --help=fields */
	const char *summary; /* no capital, no full stop */
};

/* An option, or a positional argument (then `name` is what help calls it: "SRC"). */
struct cli_option {
	const char *name; /* "out" for --out */
	char short_name;  /* 'o' for -o; 0: none */
	enum cli_kind kind;
	bool required;
	/*
	 * struct cli_strings: an option that may be repeated; the last positional, for all that
	 * follow
	 */
	bool many;
	size_t offset;		   /* of the member in the verb's struct */
	const char *arg_name;	   /* "DIR"; not for flags; NULL: the choices themselves */
	const char *help;	   /* no capital, no full stop */
	const char *choices;	   /* CLI_CHOICE: "shuffle|source" */
	const char *default_value; /* parsed like what a user types, and shown */
	const char *default_note;  /* shown instead, where the default is not a constant: "one per CPU" */
	uint64_t min, max;	   /* CLI_U64, CLI_SIZE and counts; max 0: no limit */
	const char *topic;	   /* name of one of the program's; NULL: the verb has no topics */
	bool often;		   /* of a verb with topics: many people need it, so --help alone shows it */
	const struct cli_key *keys[CLI_KEY_TABLES_MAX]; /* explained below the option, but not in a short help */
};

/* The text of a verb or of a program. */
struct cli_text {
	const char *name;
	const char *summary; /* one line: "Pack folders of images into a dataset" */
	/* for the man page: paragraphs, "- " items, "### " subheadings; empty lines between */
	const char *description;
	const char *examples; /* one command per line; --help ends with them */
};

/* This program's texts: the build makes them of docs/man/PROGRAM.md. */
extern const struct cli_text cli_manual[];

struct cli_args;

struct cli_verb {
	const char *name;		      /* one word or two: "images", "plan images" */
	const struct cli_option *positionals; /* NULL: none.  Optional ones come last */
	const struct cli_option *options[CLI_TABLES_MAX];
	size_t options_bytes;			 /* of the struct that the offsets are for */
	int (*run)(const struct cli_args *args); /* returns an exit code; see below */
	uint32_t row;				 /* for run(), of verbs that are rows of a table of the program's own */
};

struct cli_program {
	const char *name;
	const char *see_also;		  /* NULL, or for the man page: "shardcat(1)" */
	const struct cli_text *texts;	  /* the program's, one of each verb, and a zeroed row */
	const struct cli_topic *topics;	  /* NULL: none; ends with a zeroed row */
	const struct cli_verb *verbs;	  /* ends with a zeroed row */
	void (*print_version)(FILE *out); /* first line: "shardpack 0.1.0" */
};

struct cli_args {
	const struct cli_program *program;
	const struct cli_verb *verb;
	const void *options; /* the verb's struct, filled in */
	uint64_t given;	     /* for cli_given() */
};

/* True if the user typed the option or positional called `name`. */
bool cli_given(const struct cli_args *args, const char *name);

/*
 * For mistakes that only the verb can see, such as two options that exclude each other: prints, and
 * returns EXIT_USAGE.  args->verb may be NULL.
 */
int cli_misuse(const struct cli_args *args, const char *fmt, ...) MESSAGE_PRINTF(2, 3);

/*
 * A size as CLI_SIZE has it, `min` to `max`, for options that hold several.  False if the text is
 * not one.
 */
bool cli_size(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* Index of the candidate that was probably meant, or -1. */
int cli_nearest(const char *typed, const char *const *candidates, size_t candidate_count);

/* All of a tool's main(): messages, signals, parsing, the verb, and stdout's last error. */
int cli_main(const struct cli_program *program, int argc, char **argv);

#endif
