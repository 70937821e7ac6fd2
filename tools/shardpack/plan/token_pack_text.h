/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_pack_text.h - packed documents as fields of a recipe and as lines of a plan
 */
#ifndef SHARD_PLAN_TOKEN_PACK_TEXT_H
#define SHARD_PLAN_TOKEN_PACK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct words;
struct plan;
struct recipe;
struct text;
struct token_pack;

/* What a record has; tokens are of dtype u8, u16 or u32. */
void token_pack_fields(const struct token_pack *p, struct recipe *r, uint32_t dtype, uint32_t room, bool positions);

/*
 * Lines of a plan, and what is behind "stream" in one.  False if a line is not one that
 * token_pack_write() writes.
 */
void token_pack_write(const struct token_pack *p, struct text *out);
bool token_pack_read_stream(struct token_pack *p, struct words *l, const struct plan *plan);
bool token_pack_read(struct token_pack *p, struct words *l, const struct recipe *r);

#endif
