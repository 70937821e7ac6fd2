/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_parts.h - the tokens of a plan that say where an input's fields are, believing nothing
 */
#ifndef SHARDPACK_PLAN_PARTS_H
#define SHARDPACK_PLAN_PARTS_H

#include "tools/shardpack/plan/plan.h"

#define PLAN_ENCODED_PATH_BYTES (3 * (size_t)PLAN_PATH_BYTES_MAX)
#define PLAN_BYTES_MAX (UINT64_C(1) << 60) /* of a file or an input; sums of a few stay below 2^64 */

/* Decode a path below the source into `out` of PLAN_ENCODED_PATH_BYTES; false if it is none. */
bool plan_path_decode(const char *text, size_t bytes, char *out);

bool plan_has_bytes(const struct plan *p, uint64_t file, uint64_t offset, uint64_t bytes);

/* NULL, or what is wrong with the token of a field that has one; `path` is room for what is decoded. */
const char *plan_judge_part(const struct plan *p, uint32_t field, const char *token, size_t bytes, char *path);

#endif /* SHARDPACK_PLAN_PARTS_H */
