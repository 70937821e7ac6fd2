/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_field.h - the bytes of a field as they stand in a file, made those of a record
 */
#ifndef SHARD_CONVERT_FILE_FIELD_H
#define SHARD_CONVERT_FILE_FIELD_H

#include <stdint.h>

#include "shard.h"

struct plan_slice; /* plan/plan.h */

/*
 * The other order of bytes is swapped, and integers get the width of the field.  `in` has
 * `have` bytes of the file: a whole field has as many as it says, a ragged one may have fewer.  Of
 * that the rest becomes 0, and its length is written as well.  `group` are those of the record.
 */
void file_field_convert(const struct shard_schema *schema, uint32_t field, const struct plan_slice *s,
			const uint8_t *in, uint64_t have, uint8_t *const *group);

#endif
