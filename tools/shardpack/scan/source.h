/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - what can be packed: one table, one file for each
 *
 * A source is two verbs, `shardpack NAME` and `shardpack plan NAME`, and two functions.  settle() looks at the command
 * alone; scan() looks at the inputs and fills the plan.  What follows is the same for all of them, by kind:
 *
 *   images  each input has a line in the plan, is read whole, decoded and transformed; decode.h, transform_image.h
 *   fixed   inputs are records of files, counted; their bytes are copied or widened as the plan's slices say; fixed.h
 */
#ifndef SHARDPACK_SOURCE_H
#define SHARDPACK_SOURCE_H

#include "tools/cli/cli.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/input/stored.h"

/* What a scan found beside the inputs. */
struct scan {
	uint64_t ignored_count; /* files, or members of files, that are no inputs */
	uint64_t stray_count;	/* those of them that would be images, but lie in no class's folder */
	char stray[256];	/* the first of these in byte order */
	uint64_t barren_count;	/* files of records that have none, archives without images */
	char barren[1024];	/* the first of these */
	struct text warnings;	/* one line each, as already printed */
};

/* A command on its way to a plan. */
struct request {
	const struct pack_options *o;
	const struct cli_args *args;
	const struct source_place *place;
	struct stored *stored; /* files that hold inputs; scan() adds them to the plan */
	struct recipe *recipe;
	struct plan *plan;
	struct scan *scan;
};

struct source {
	const struct cli_verb *pack, *plan;

	/* Both say why they fail and return the exit code. */
	int (*settle)(const struct request *r); /* complete the recipe as far as options decide it */
	int (*scan)(const struct request *r);	/* begin the plan and add all inputs; on failure it is freed all the same */
};

/* By enum recipe_source, which is the order of --help. */
extern const struct source *const source_table[SOURCE_COUNT];

extern const struct source source_images, source_array, source_raw, source_tokens, source_cifar, source_mnist;

/* Print a line and keep it for the report; without the newline. */
void scan_warn(struct scan *scan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void scan_free(struct scan *scan);

/*
 * Count a file without records, or an archive without images.  When all are listed, say so: a warning, or a refusal if
 * there is nothing else.
 */
void scan_barren(struct scan *scan, const char *where);
void scan_warn_of_barren(struct scan *scan, const char *what);
int scan_refuse_barren(const struct request *r, const char *what, const char *remedy);

/* Say so if folders, which are classes in byte order, have numbers for names that count otherwise. */
void scan_warn_of_numbers(struct scan *scan, const struct classes *folders);

/* What pack verbs share, for their tables. */
extern const struct cli_option source_output_options[]; /* --out, and what else decides bytes */
extern const struct cli_option source_run_options[];    /* what does not */
extern const struct cli_option source_input_options[];  /* where things are, and --dry-run */
int source_run(const struct cli_args *args);	  /* cmd_pack.c: the verb `shardpack NAME` */
int source_plan_run(const struct cli_args *args); /* and `shardpack plan NAME` */

/* The verb `shardpack plan NAME`, of a source whose tables are called `positional` and `options`. */
#define SOURCE_PLAN_VERB(NAME, DESCRIPTION, EXAMPLES)                                                                  \
	{                                                                                                              \
		.name = "plan " NAME, .summary = "Write the plan only, for builds in parts", .description = DESCRIPTION, \
		.examples = EXAMPLES, .positionals = positional,                                                         \
		.options = {source_output_options, options, source_input_options},                                       \
		.options_bytes = sizeof(struct pack_options), .run = source_plan_run,                                    \
	}

/* What there is to say of most of them. */
#define SOURCE_PLAN_AS(NAME) "As `shardpack " NAME "`, but stops before the first shard; see `shardpack plan images`."

#endif /* SHARDPACK_SOURCE_H */
