/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_end.h - the last line of a small file, "end" and the SHA-256 of all before it
 */
#ifndef SHARD_COMMON_TEXT_END_H
#define SHARD_COMMON_TEXT_END_H

#include <stdbool.h>

#include "tools/common/text.h"

void text_add_end(struct text *t);

/* Check the line and cut it off.  False if it is missing, or is that of another text. */
bool text_cut_end(struct text *t);

#endif
