/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - how large an input may be before it is refused: --limit, and its line in a plan
 *
 * Limits decide verdicts, so they belong to the recipe, but for the last one.  Pure.
 */
#ifndef SHARD_SHARDPACK_IMAGES_LIMITS_H
#define SHARD_SHARDPACK_IMAGES_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/cli.h"
#include "tools/common/text.h"

enum limit {
	LIMIT_PIXELS,  /* of an image */
	LIMIT_SIDE,    /* of an image, in pixels */
	LIMIT_SCANS,   /* of a JPEG */
	LIMIT_FRAMES,  /* of an animation, or pages */
	LIMIT_MEMORY,  /* bytes inside libjpeg, beside the image */
	LIMIT_MEMBERS, /* of a sample in an archive */
	LIMIT_UNPACK,  /* bytes that a compressed file unpacks to; in no plan, as it decides no verdict */
	LIMITS,
};

/* Their names, and what --help says. */
extern const struct cli_key limit_help[];

struct limits {
	uint64_t most[LIMITS]; /* 0: the default, which is never written as a number */
};

/* The limit in force: the user's, or the default; of LIMIT_UNPACK 0 if the user gave none. */
uint64_t limits_most(const struct limits *l, enum limit which);

/* "pixels=200M,scans=500".  False, and `why` says why not, if it is none of that form. */
bool limits_parse(const char *text, struct limits *out, char *why, size_t why_bytes);

/* The same of sources without images: "unpack=SIZE" and nothing else. */
bool limits_parse_unpack(const char *text, struct limits *out, char *why, size_t why_bytes);

/*
 * The line of a plan, "limit pixels=209715200,scans=500", with those that are not the default;
 * nothing if all are.
 */
void limits_write(const struct limits *l, struct text *out);

#endif
