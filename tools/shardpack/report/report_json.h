/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json.h - the report as JSON, with all that is known
 */
#ifndef SHARD_REPORT_REPORT_JSON_H
#define SHARD_REPORT_REPORT_JSON_H

#include <stdint.h>
#include <stdio.h>

struct report;
struct shard_dataset;

/*
 * `ds` is NULL if there is no sealed dataset; inputs[] are those of each class.  A failure to write
 * stays in the stream.
 */
void report_json(const struct report *r, FILE *out, const struct shard_dataset *ds, const uint64_t *inputs);

/* How the run ended, in a word. */
const char *report_outcome(const struct report *r);

#endif
