/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_csv.c - any bytes as CSV, with commas or semicolons, and as TSV
 *
 * The text lies at the end of its memory but for the one byte that may be written, so a sanitizer
 * sees the first touch outside.  What was read, written out with every field in quotes, must read
 * the same again.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/parse/parse.h"

struct table {
	char *text; /* fields, each with its NUL */
	size_t bytes, rows, fields;
};

static void read_table(const uint8_t *data, size_t size, char separator, struct table *out, bool *good)
{
	char *text = malloc(size + 1), why[200] = "";
	struct csv_row *row = malloc(sizeof(*row));
	struct csv c;
	enum csv_status status;
	uint64_t line = 0;

	out->text = malloc(size + 1 + size); /* every byte is a separator at most once */
	must(text && row && out->text, "no memory");
	memcpy(text, data, size);
	csv_start(&c, text, size, separator);
	out->bytes = out->rows = out->fields = 0;
	while ((status = csv_next(&c, row, why, sizeof(why))) == CSV_ROW) {
		must(row->count >= 1 && row->count <= CSV_FIELDS_MAX, "a row has no fields");
		must(row->line > line && row->line <= size + 1, "rows are not in the order of lines");
		line = row->line;
		for (uint32_t i = 0; i < row->count; i++) {
			size_t n = strlen(row->field[i]) + 1;

			must(row->field[i] >= text && row->field[i] + n <= text + size + 1,
			     "a field lies outside of the text");
			must(out->bytes + n <= 2 * size + 1, "fields are more than the text");
			memcpy(out->text + out->bytes, row->field[i], n);
			out->bytes += n;
			out->fields++;
		}
		out->rows++;
	}
	*good = status == CSV_END;
	if (status == CSV_BAD)
		must(why[0] && memchr(why, 0, sizeof(why)), "a refusal has no reason");
	free(row);
	free(text);
}

/* All fields on a line of their own, in quotes. */
static void turn_round(const struct table *t, char separator)
{
	char *text = malloc(2 * t->bytes + 3 * t->fields + 1), *to = text;
	struct table again;
	bool good;

	must(text, "no memory");
	for (const char *at = t->text; at < t->text + t->bytes; at++) {
		*to++ = '"';
		for (; *at; at++) {
			if (*at == '"')
				*to++ = '"';
			*to++ = *at;
		}
		*to++ = '"';
		*to++ = '\n';
	}
	read_table((uint8_t *)text, (size_t)(to - text), separator, &again, &good);
	must(good && again.rows == t->fields && again.bytes == t->bytes && !memcmp(again.text, t->text, t->bytes),
	     "what was read does not read the same again");
	free(again.text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table t;
	bool good;

	for (const char *separator = ",;\t"; *separator; separator++) {
		read_table(data, size, *separator, &t, &good);
		if (good && size < 1 << 20)
			turn_round(&t, csv_separator((const char *)data, size));
		free(t.text);
	}
	return 0;
}
