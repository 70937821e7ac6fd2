/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - how large an input may be before it is refused: --limit, and its line in a plan
 *
 * The readers hold inputs against them: decode.c and its formats, and scan_samples.c.
 */
#include "tools/shardpack/images/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/cli.h"
#include "tools/shardpack/images/images.h"

#define MEMBERS_DEFAULT 1000
#define MEMBERS_MAX	65536 /* each is compared with all others of its sample */
#define WORD_BYTES	32

static const struct {
	const char *name;
	uint64_t most, max; /* by default, and what can be asked for */
} kinds[LIMITS] = {
	[LIMIT_PIXELS] = {"pixels", DECODE_PIXELS_DEFAULT, (uint64_t)DECODE_SIDE_MAX *DECODE_SIDE_MAX},
	[LIMIT_SIDE] = {"side", DECODE_SIDE_MAX, DECODE_SIDE_MAX},
	[LIMIT_SCANS] = {"scans", DECODE_SCANS_DEFAULT, INT_MAX}, /* libjpeg counts in an int */
	[LIMIT_FRAMES] = {"frames", DECODE_FRAMES_DEFAULT, DECODE_FRAMES_DEFAULT},
	[LIMIT_MEMORY] = {"memory", DECODE_MEMORY_DEFAULT_BYTES, LONG_MAX}, /* and has this in a long */
	[LIMIT_MEMBERS] = {"members", MEMBERS_DEFAULT, MEMBERS_MAX},
	[LIMIT_UNPACK] = {"unpack", 0, INT64_MAX}, /* by default stored.c decides, by the size of the file */
};

uint64_t limits_most(const struct limits *l, enum limit which)
{
	return l->most[which] ? l->most[which] : kinds[which].most;
}

static bool refuse_name(const char *word, char *why, size_t why_bytes)
{
	const char *names[LIMITS];
	int nearest;

	for (int i = 0; i < LIMITS; i++)
		names[i] = kinds[i].name;
	nearest = cli_nearest(word, names, LIMITS);
	snprintf(why, why_bytes,
		 "'%s' is not a limit: must be pixels, side, scans, frames, memory, members or unpack%s%s%s", word,
		 nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest], nearest < 0 ? "" : "'?");
	return false;
}

/* One of them, "WHAT=N"; bit i of *given: enum limit. */
static bool parse_one(const char *text, size_t bytes, struct limits *out, uint32_t *given, char *why, size_t why_bytes)
{
	char word[2 * WORD_BYTES], *value;
	uint32_t i;

	snprintf(word, sizeof(word), "%.*s", bytes < sizeof(word) ? (int)bytes : (int)sizeof(word) - 1, text);
	value = strchr(word, '=');
	if (bytes >= sizeof(word) || !value) {
		snprintf(why, why_bytes, "'%s': must be WHAT=N, such as pixels=200M", word);
		return false;
	}
	*value++ = '\0';
	for (i = 0; i < LIMITS && strcmp(kinds[i].name, word); i++)
		;
	if (i == LIMITS)
		return refuse_name(word, why, why_bytes);
	if (*given >> i & 1) {
		snprintf(why, why_bytes, "%s is given twice", word);
		return false;
	}
	*given |= 1u << i;
	if (!cli_size(value, 1, kinds[i].max, &out->most[i])) {
		snprintf(why, why_bytes,
			 "%s=%s: must be 1 to %" PRIu64 ", and may end in K, M, G or T (powers of "
			 "1024), such as 64M",
			 word, value, kinds[i].max);
		return false;
	}
	if (out->most[i] == kinds[i].most)
		out->most[i] = 0;
	return true;
}

bool limits_parse(const char *text, struct limits *out, char *why, size_t why_bytes)
{
	uint32_t given = 0;

	memset(out, 0, sizeof(*out));
	for (;; text++) {
		size_t bytes = strcspn(text, ",");

		if (!parse_one(text, bytes, out, &given, why, why_bytes))
			return false;
		text += bytes;
		if (!*text)
			return true;
	}
}

bool limits_parse_unpack(const char *text, struct limits *out, char *why, size_t why_bytes)
{
	if (!strncmp(text, "unpack=", strlen("unpack=")) && !strchr(text, ','))
		return limits_parse(text, out, why, why_bytes);
	snprintf(why, why_bytes, "must be unpack=SIZE, such as unpack=20G; the other limits are those of images");
	return false;
}

void limits_write(const struct limits *l, struct text *out)
{
	const char *before = "limit ";

	for (int i = 0; i < LIMITS; i++)
		if (l->most[i] && i != LIMIT_UNPACK) {
			text_format(out, "%s%s=%" PRIu64, before, kinds[i].name, l->most[i]);
			before = ",";
		}
	if (before[0] == ',')
		text_add(out, "\n", 1);
}
