/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what will be packed, in which order, into which shards: decided before any work
 *
 * A plan is canonical text.  Its SHA-256 names the dataset-to-be: shards carry it, and any
 * process that holds the same plan makes the same shards, in any order.
 *
 *   shardpack-plan 1
 *   source images ... shard-records 5000         the recipe, recipe.h
 *   version libjpeg-turbo 2.1.5 ...              what decides pixels beside the recipe
 *   class 0 astronaut                            percent-encoded
 *   classes 1
 *   input 0 0 24117 astronaut/astronaut_000.jpg  number, class, bytes, path in the source
 *   inputs 1
 *   shard 0 0 1                                  number, first ordinal, how many
 *   shards 1
 *   end 66e2...                                  SHA-256 of all before: the plan's digest
 *
 * Inputs stand in source order.  Their place in pack order is their ordinal; the order is
 * the identity or shard_shuffle(seed, inputs).  The text is also the memory that the plan
 * lives in: beside it there are 16 bytes per input and 8 per class.
 */
#ifndef SHARDPACK_PLAN_H
#define SHARDPACK_PLAN_H

#include "tools/shardpack/classes.h"
#include "tools/shardpack/recipe.h"
#include "tools/shardpack/text.h"

#define PLAN_INPUTS_MAX (UINT64_C(1) << 40) /* as records of a shard; far more than fit in memory */
#define PLAN_PATH_BYTES_MAX 4096	    /* the system's own limit, with the NUL */

struct plan {
	struct recipe recipe;
	struct text text;
	uint8_t digest[32];
	uint64_t class_count, input_count, shard_count;
	uint64_t source_bytes;		 /* of all inputs */
	size_t versions_at, versions_bytes; /* the version lines in the text */
	uint64_t *class_at;		 /* where in the text the name begins */
	uint64_t *input_at;		 /* where in the text the line begins */
	uint64_t input_capacity;
	uint64_t *order;		 /* [ordinal] the input that stands there; NULL: the same number */
};

/* An input as the plan names it. */
struct plan_input {
	uint32_t class_idx;
	uint64_t source_bytes;
	size_t path_bytes;
	char path[PLAN_PATH_BYTES_MAX];
};

/*
 * All functions that may fail say why and return the exit code.  Make a plan: begin, add
 * every input in source order, finish.  recipe.shard_records may be settled until finish.
 */
int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes);
int plan_add_input(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, size_t path_bytes);
int plan_finish(struct plan *p);

/*
 * Take over `text`, which says it is a plan; `name` is for messages.  Everything is checked:
 * numbers, classes, and that paths stay below the source.
 */
int plan_parse(struct plan *p, struct text *text, const char *name);

/* EXIT_DONE if the libraries that decide pixels are those of the plan, else EXIT_MISMATCH and a line. */
int plan_check_versions(const struct plan *p, const char *name);

/* The last step of finish and parse: who stands where in pack order. */
int plan_settle_order(struct plan *p);

void plan_free(struct plan *p);

/* The input with the number `input_idx` in source order; the number that stands at an ordinal. */
void plan_input(const struct plan *p, uint64_t input_idx, struct plan_input *out);
uint64_t plan_input_at(const struct plan *p, uint64_t ordinal);

/* Ordinals [*first, *first + *count) make up the shard. */
void plan_shard(const struct plan *p, uint64_t shard_idx, uint64_t *first, uint64_t *count);

/* Class name, decoded, into `out` of SHARD_KEY_BYTES_MAX + 1. */
void plan_class_name(const struct plan *p, uint64_t class_idx, char *out);

#endif /* SHARDPACK_PLAN_H */
