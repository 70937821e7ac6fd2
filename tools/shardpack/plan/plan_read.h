/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_read.h - read a plan from its text, and check all of it
 */
#ifndef SHARD_PLAN_PLAN_READ_H
#define SHARD_PLAN_PLAN_READ_H

struct plan;
struct text;

/*
 * Take over `text`, which says it is a plan; `name` is for messages.  Everything is checked:
 * numbers, classes, and that paths stay below the source.  Says why it fails and returns the exit
 * code; the plan is to be freed all the same.
 */
int plan_parse(struct plan *p, struct text *text, const char *name);

#endif
