/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html.h - the report as one page for people
 *
 * The page is whole: no script, nothing from elsewhere, a few hundred KB at most.  Names are
 * escaped as they are for terminals, and then for HTML.
 */
#ifndef SHARD_REPORT_REPORT_HTML_H
#define SHARD_REPORT_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

struct report;
struct shard_dataset;

/*
 * `ds` is NULL if there is no sealed dataset; inputs[] are those of each class.  Returns the exit
 * code, for what is read of the dataset; a failure to write stays in the stream.
 */
int report_html(const struct report *r, FILE *out, struct shard_dataset *ds, const uint64_t *inputs);

#endif
