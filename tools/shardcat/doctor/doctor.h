/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - what a machine offers to a loader
 */
#ifndef SHARD_SHARDCAT_DOCTOR_DOCTOR_H
#define SHARD_SHARDCAT_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

/*
 * This room looks, and finds the words; cmd_doctor.c sets them on a screen.  It asks the system, the
 * disk and the GPU's driver by the functions that loaders use, so it says what a loader would meet.
 * Nothing is changed.
 */

#define FINDING_TEXT_BYTES (sizeof(((struct shard_error *)0)->message) + 512)
#define FINDING_FACTS	   8u

enum verdict {
	VERDICT_GOOD,
	VERDICT_SLOWER,	 /* all works, but something could be faster */
	VERDICT_MISSING, /* features that need this do not work */
	VERDICT_UNKNOWN, /* this could not be looked at */
	VERDICTS
};

/* A detail of a finding, for programs: a number, or a text. */
struct fact {
	const char *name;
	const char *text; /* NULL: it is a number */
	uint64_t number;
};

/*
 * One check of the machine: its result, what that means for a loader, and advice.  It starts
 * zeroed, with a name and a verdict.
 */
struct finding {
	const char *name; /* such as "io_uring"; the same on all machines */
	enum verdict verdict;
	uint32_t fact_count;
	/* without a full stop; the last two may be empty */
	char found[FINDING_TEXT_BYTES], so[FINDING_TEXT_BYTES], advice[FINDING_TEXT_BYTES];
	struct fact fact[FINDING_FACTS];
};

struct doctor {
	const char *path; /* of a dataset, or of any file or folder on the disk in question; or NULL */
	void *context;
	void (*tell)(void *context, const struct finding *f);
};

/*
 * Look at CPUs, memory, huge pages, io_uring, the disk behind `path` and the GPUs, and tell each
 * finding.  Fails only if `path` cannot be looked at.
 */
int doctor_look(const struct doctor *d, struct shard_error *err);

/* ---- what doctor_look() calls in turn ---- */

int doctor_disk(const struct doctor *d, struct shard_error *err);
/* The path itself, or the first shard in that folder, to be freed; NULL: there is none. */
char *doctor_file(const char *path);
/*
 * Tries page-locking of 64 MiB, and of as much of a file at d->path.  That makes the first device's
 * primary context for as long as it takes.
 */
void doctor_gpu(const struct doctor *d, uint64_t node_count);

/* ---- findings ---- */

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

/* ---- what the kernel tells in small files; UINT64_MAX: it hides that number ---- */

/* The front of a file; "" if it cannot be read. */
bool kernel_text(const char *path, char *text, size_t room);
/* The number in a text behind `word`, or at its front if that is empty. */
uint64_t number_behind(const char *text, const char *word);

/* What this many lanes of PCIe carry one way, in 10^9 bytes a second, after coding, before packets. */
double link_gb_per_s(double gt_per_s, uint64_t width);

#endif
