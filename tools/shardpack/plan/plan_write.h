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

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes);

/*
 * An input that is a file of its own (PLAN_NO_FILE), or a part of a file.  `fields` has the tokens
 * of further fields, each with a blank before it; field_part.h.
 */
int plan_add_part(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, uint32_t file,
		  uint64_t offset, const char *fields);

int plan_finish(struct plan *p);

#endif
