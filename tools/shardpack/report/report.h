/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what happened, for people and programs
 */
#ifndef SHARD_SHARDPACK_REPORT_REPORT_H
#define SHARD_SHARDPACK_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shard.h"
#include "shard_pack.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"

/*
 * The result of a run, and what is said of it: on stderr, as JSON, as a page
 */

struct job;
struct scan;
struct text;

struct report {
	const struct job *job;	 /* its account is sorted */
	const struct scan *scan; /* NULL if this process did not list the source */
	int exit_code;
	bool planned; /* nothing else was to be done */
	bool sealed;  /* OUT is the dataset */
	uint64_t elapsed_ns;
};

/* ---- report.c: how it went, in a few lines on stderr; the last one has the counts ---- */

void report_tell(const struct report *r);

/* A line about files that no extension selects, if there are any. */
void report_ignored(const struct scan *scan);

/* ---- report.c: the report that --report asks for ---- */

/*
 * Write it as JSON, or as a page if the name ends in .html; durably, in place of a file that is
 * there.  Says why it fails and returns the exit code.
 */
int report_file_write(const struct report *r, const char *path);

/* ---- dry_run.c: the plan, shown instead of done ---- */

/* Print the recipe, the classes, the room on disk and the first records.  Returns the exit code. */
int dry_run(const struct job *job, const struct scan *scan);

/* ---- report.c: what both reports say, each fact once ---- */

struct fact {
	const char *object; /* of the key, one pointer for all of its facts; NULL: the report itself */
	const char *key;    /* in JSON; NULL: it is not there */
	const char *label;  /* on the page; NULL: it is not there */
	uint64_t count;
};

#define FACTS_MAX 12

/* What became of the inputs; how images and boxes fit.  Each returns how many facts there are. */
uint32_t facts_account(const struct account *a, struct fact out[FACTS_MAX]);
uint32_t facts_fit(const struct fit_count *f, struct fact out[FACTS_MAX]);

/* What is not packed of a file, by enum decode_dropped: in JSON, on the page, on stderr. */
extern const struct fact_dropped {
	const char *key, *label, *text, *remedy;
	bool is_odd; /* unless the user said that it is meant */
} facts_dropped[DROPPED_COUNT];

/* Lists of inputs, in the order of the reports. */
#define FACTS_LISTS 3

struct fact_list {
	const char *key, *title, *id;	 /* the last two are the page's */
	const struct problem_list *list; /* NULL: it is not known */
};

void facts_lists(const struct account *a, struct fact_list out[FACTS_LISTS]);

/* Why an input is on a list, in a word. */
const char *facts_reason(const struct problem *p);

/* What the scan said, each on a line; `lines` is NULL if this process did not scan. */
#define FACTS_TEXTS 2

struct fact_text {
	const char *key, *title;
	const struct text *lines;
};

void facts_texts(const struct scan *scan, struct fact_text out[FACTS_TEXTS]);

struct fact_class {
	char name[SHARD_KEY_BYTES_MAX + 1];
	bool has_inputs, has_records; /* are the numbers known? */
	uint64_t inputs, records;
};

/* `ds` is NULL if there is no sealed dataset; inputs[] has a count for each class. */
void facts_class(const struct plan *plan, const struct shard_dataset *ds, const uint64_t *inputs, uint64_t class_idx,
		 struct fact_class *out);

/* The path of an input, by its number in the order of the source; its length. */
size_t facts_path(const struct plan *plan, uint64_t input_idx, char path[PLAN_PATH_BYTES_MAX]);

/* How the run ended, in a word. */
const char *facts_outcome(const struct report *r);

/* Mean and standard deviation of each channel of the first image, scaled to 0..1. */
struct fact_statistics {
	uint32_t channels;
	double mean[SHARD_TALLY_CHANNELS_MAX], deviation[SHARD_TALLY_CHANNELS_MAX];
};

/* False if the dataset has none. */
bool facts_statistics(const struct shard_dataset *ds, struct fact_statistics *out);

/* ---- the two printers; a failure to write stays in the stream ---- */

/* report_json.c: all that is known */
void report_json(const struct report *r, FILE *out, const struct shard_dataset *ds, const uint64_t *inputs);

/*
 * report_html.c: one page for people.  It is whole: no script, nothing from elsewhere, a few hundred
 * KB at most.  Names are escaped as they are for terminals, and then for HTML.  Returns the exit
 * code, for what is read of the dataset.
 */
int report_html(const struct report *r, FILE *out, struct shard_dataset *ds, const uint64_t *inputs);

#endif
