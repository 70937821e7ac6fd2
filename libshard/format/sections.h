/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - which sections a shard must have, and where they lie
 */
#ifndef SHARD_DISK_SECTIONS_H
#define SHARD_DISK_SECTIONS_H

#include "libshard/format/pages.h"

/* I34 to I42. */
int sections_check(const struct pages *p, struct shard_error *err);

#endif
