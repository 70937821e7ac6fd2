/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_texts.h - lists of texts: captions of which one, each or all are packed
 *
 * A record has all texts of pick=all as rows of one length, with zeros behind each.  No text has a
 * zero in it.  A plan has them shorter: each text with one zero behind it, all in hex.
 *
 * Pure.
 */
#ifndef SHARD_PLAN_FIELD_TEXTS_H
#define SHARD_PLAN_FIELD_TEXTS_H

#include <jansson.h>

#include "tools/common/text.h"
#include "tools/shardpack/plan/field.h"
#include "tools/shardpack/plan/field_part.h"

/*
 * The value is a list of texts, or one: `out` gets what s->pick says, in the form of a record.
 * False, and the verdict, if it is neither, or does not fit.  With pick=each it must be one text:
 * text_each.h has taken the list apart.
 */
bool field_texts_take(const struct shard_field *f, const struct field_source *s, const json_t *value, uint8_t *out,
		      size_t *out_bytes, struct field_verdict *v);

/* All texts of a record, of which `bytes` are rows, as a token of a plan with a blank before it. */
void field_texts_add(const struct shard_field *f, const uint8_t *rows, size_t bytes, struct text *out);

/*
 * May the field have the value of this token of a plan, which is known to be hex?  Of a list that
 * is so many texts, none of them too long; of other fields so many bytes.
 */
bool field_texts_fit(const struct shard_field *f, const struct field_source *s, const struct field_part *part);

/* From such a token to rows; `out` is zero.  Returns the bytes of the rows. */
size_t field_texts_put(const struct shard_field *f, const struct field_part *part, uint8_t *out);

#endif
