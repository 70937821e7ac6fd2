/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - rows of a table in text: CSV as RFC 4180 has it, the same with semicolons, or TSV
 *
 * Strict: a quote that is not closed, or that stands within a field, and a NUL byte are errors,
 * with their lines.  Lines end with LF or CRLF; empty ones are passed over.  Pure; fields are
 * decoded where they lie.
 */
#ifndef SHARD_FORMAT_CSV_H
#define SHARD_FORMAT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_FIELDS_MAX 256

struct csv {
	char *at, *end; /* the rest; *end must be writable */
	char separator; /* a tab: nothing quotes */
	uint64_t line;	/* of the next row, from 1 */
};

struct csv_row {
	uint64_t line; /* where it begins */
	uint32_t count;
	char *field[CSV_FIELDS_MAX]; /* NUL-terminated */
};

enum csv_status { CSV_ROW, CSV_END, CSV_BAD };

/*
 * Start with a text of `bytes` bytes and one more that may be written; a byte order mark is passed
 * over.
 */
void csv_start(struct csv *c, char *text, size_t bytes, char separator);

/*
 * What separates the fields of a CSV: ';' if the first row has one and no ',', both outside of
 * quotes, as where Excel writes numbers with a comma; else ','.
 */
char csv_separator(const char *text, size_t bytes);

enum csv_status csv_next(struct csv *c, struct csv_row *row, char *why, size_t why_bytes);

#endif
