/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - findings of shard_doctor(): how they are said
 */
#ifndef SHARD_DOCTOR_DOCTOR_H
#define SHARD_DOCTOR_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include "shard.h"

#define DOCTOR_TEXT_BYTES (sizeof(((struct shard_error *)0)->message) + 512) /* found may quote an error and more */
#define DOCTOR_FACTS	  8u

struct doctor {
	struct shard_doctor_options o;
	uint64_t node_count; /* of NUMA; UINT64_MAX: not told */
};

/* A finding in the making: zeroed, filled in, told. */
struct finding {
	const char *name;
	uint32_t verdict, fact_count;
	char found[DOCTOR_TEXT_BYTES], so[DOCTOR_TEXT_BYTES], advice[DOCTOR_TEXT_BYTES];
	struct shard_fact fact[DOCTOR_FACTS];
};

void finding_set(char text[DOCTOR_TEXT_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_number(struct finding *f, const char *name, uint64_t value); /* UINT64_MAX: not told, so no fact */
void finding_text(struct finding *f, const char *name, const char *text); /* which must live until it is told */
/* A message of ours says what was found, "; ", and what to do about it; then perhaps what works without, which `so` says. */
void finding_quote(struct finding *f, const char *message);
void finding_tell(const struct doctor *d, const struct finding *f);

#define SIZE_CHARS 32
const char *size_text(char out[SIZE_CHARS], uint64_t bytes); /* "1.5 GiB" */

/* ---- what is looked at ---- */

void doctor_machine(struct doctor *d);
int doctor_disk(const struct doctor *d, struct shard_error *err);
void doctor_gpu(const struct doctor *d);

#endif
