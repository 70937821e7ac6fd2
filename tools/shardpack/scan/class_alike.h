/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_alike.h - class names that people cannot tell apart: "cat" and "cat ", "Cat" and "cat"
 */
#ifndef SHARD_SCAN_CLASS_ALIKE_H
#define SHARD_SCAN_CLASS_ALIKE_H

#include <stdbool.h>

struct plan;
struct scan;

/*
 * Warn of such pairs of a finished plan, with what they differ in and how many inputs each has; or
 * refuse the first one if `strict`.  One warning names the first pairs, and reports have a line for
 * each.  Returns the exit code.
 */
int class_alike_judge(const struct plan *plan, struct scan *scan, bool strict);

#endif
