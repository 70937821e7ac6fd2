/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif_decision.h - an image that lies on its side, and boxes or masks that have their place in it
 *
 * Do their numbers mean the pixels as they are stored, or the picture that people see?  Annotators
 * use either, so somebody has to say it with --exif.
 */
#ifndef SHARD_BUILD_EXIF_DECISION_H
#define SHARD_BUILD_EXIF_DECISION_H

#include <stdbool.h>

struct job;
struct result;

/* Both print what has to be typed, and return EXIT_USAGE. */

/*
 * Before anything is written: is it undecided for one of 1,000 inputs from all over the plan?  Of
 * large images there are fewer, so that about 256 MiB are read.
 */
int exif_decision_look(const struct job *job, bool in_sandbox);

/* While records are made: is it undecided for this one? */
int exif_decision_check(const struct job *job, const struct result *r);

#endif
