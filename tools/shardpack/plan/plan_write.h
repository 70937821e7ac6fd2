/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_write.h - a plan, made line by line: begin, add every input in source order, finish
 *
 * Files and slices may be added before plan_begin(), which keeps them.  recipe.shard_records may
 * be settled until plan_finish().  All functions say why they fail and return the exit code.
 */
#ifndef SHARD_PLAN_PLAN_WRITE_H
#define SHARD_PLAN_PLAN_WRITE_H

#include <stdint.h>

struct classes;
struct plan;
struct recipe;
struct shard_schema;

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes);

/*
 * An input that is a file of its own (PLAN_NO_FILE), or a part of a file.  `fields` has the tokens
 * of further fields, each with a blank before it; field_part.h.  Of an input that is known to be
 * bad it has those of bad_input.h instead, and `class_idx` may be PLAN_NO_CLASS.
 */
int plan_add_row(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, uint64_t row,
		 const char *fields);
int plan_add_part(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, uint32_t file,
		  uint64_t offset, const char *fields);

/* The same of images that may have several labels: `classes` is a list as in classes.h. */
int plan_add_labelled(struct plan *p, const char *classes, uint64_t source_bytes, const char *path, uint64_t row,
		      uint32_t file, uint64_t offset, const char *fields);

/* How many records go into a shard, when all inputs are there; 0 where the user did not say. */
int plan_settle_shard_size(struct plan *p, const struct shard_schema *s, uint64_t shard_records, uint64_t shard_bytes);

int plan_finish(struct plan *p);

#endif
