/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - from a name back to its number; the other direction is public
 */
#ifndef SHARD_DISK_NAMES_H
#define SHARD_DISK_NAMES_H

#include "shard.h"

/* 1 and the number for which name_of() gives exactly `text`, or 0. */
int name_find(const char *(*name_of)(uint32_t), const char *text, size_t bytes, uint32_t *out);

#endif
