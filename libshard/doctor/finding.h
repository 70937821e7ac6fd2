/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - one finding of shard_doctor(): filled in, and told to the caller
 *
 * A finding starts zeroed, with a name and a verdict.
 */
#ifndef SHARD_DOCTOR_FINDING_H
#define SHARD_DOCTOR_FINDING_H

#include <stddef.h>
#include <stdint.h>

#include "shard.h"
#include "shard_gpu.h"

#define FINDING_TEXT_BYTES (sizeof(((struct shard_error *)0)->message) + 512)
#define FINDING_FACTS	   8u

struct finding {
	const char *name;
	uint32_t verdict, fact_count;
	char found[FINDING_TEXT_BYTES], so[FINDING_TEXT_BYTES], advice[FINDING_TEXT_BYTES];
	struct shard_fact fact[FINDING_FACTS];
};

/* Write one of the three texts, or add to it. */
void finding_set(char text[FINDING_TEXT_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_add(char text[FINDING_TEXT_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Add a fact.  A number of UINT64_MAX or an empty text is unknown, and adds none. */
void finding_number(struct finding *f, const char *name, uint64_t value);
void finding_text(struct finding *f, const char *name, const char *text); /* not copied */

/*
 * Fill in `found` and `advice` from an error of the library, which reads "problem; remedy".  A
 * third part would say what works without it.  It is left out, because `so` says that.
 */
void finding_quote(struct finding *f, const char *message);

void finding_tell(const struct shard_doctor_options *o, const struct finding *f);

#define SIZE_CHARS 32
const char *size_text(char out[SIZE_CHARS], uint64_t bytes); /* "1.5 GiB" */

#endif
