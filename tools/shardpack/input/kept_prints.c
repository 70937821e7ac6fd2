/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_prints.c - the fingerprints that a finished dataset keeps of its sources
 */
#include "tools/shardpack/input/kept_prints.h"

#include <inttypes.h>
#include <string.h>

#include "tools/common/text_end.h"

static const uint8_t none[FINGERPRINT_BYTES];

static void write_prints(const char *name, uint64_t count, uint8_t (*print)[FINGERPRINT_BYTES], struct text *out)
{
	text_format(out, "%s %" PRIu64 "\n", name, count);
	for (uint64_t i = 0; i < count; i++) {
		if (memcmp(print[i], none, sizeof(none)) != 0)
			text_hex(out, print[i], FINGERPRINT_BYTES);
		else
			text_add(out, "-", 1);
		text_add(out, "\n", 1);
	}
}

static void write_head(const char *dataset_id, struct text *out)
{
	text_format(out, "shardpack-kept 1\ndataset %s\n", dataset_id);
}

void kept_prints_write(const struct origin *o, const char *dataset_id, struct text *out)
{
	write_head(dataset_id, out);
	write_prints("inputs", o->own_print_count, o->print, out);
	write_prints("files", o->file_count, o->print + o->own_print_count, out);
	text_add_end(out);
}

/* The expected line; the cursor stays behind it. */
static bool take(const char **at, const struct text *want)
{
	bool same = !text_failed(want) && !strncmp(*at, want->data, want->bytes);

	*at += same ? want->bytes : 0;
	return same;
}

static bool take_head(const char **at, const char *dataset_id)
{
	struct text head = {0};
	bool same;

	write_head(dataset_id, &head);
	same = take(at, &head);
	text_free(&head);
	return same;
}

static bool take_prints(const char **at, const char *name, uint64_t count, uint8_t (*print)[FINGERPRINT_BYTES])
{
	struct text head = {0};
	bool good;

	text_format(&head, "%s %" PRIu64 "\n", name, count);
	good = take(at, &head);
	text_free(&head);
	for (uint64_t i = 0; good && i < count; i++) {
		size_t bytes = strcspn(*at, "\n");

		if (bytes == 1 && **at == '-')
			memset(print[i], 0, FINGERPRINT_BYTES);
		else
			good = text_unhex(*at, bytes, print[i], FINGERPRINT_BYTES);
		*at += bytes + ((*at)[bytes] == '\n');
	}
	return good;
}

bool kept_prints_are_of(const struct text *text, const char *dataset_id)
{
	const char *at = text->data;

	return take_head(&at, dataset_id);
}

bool kept_prints_read(struct text *text, const char *dataset_id, struct origin *o)
{
	const char *at = text->data;

	return text_cut_end(text) && take_head(&at, dataset_id) &&
	       take_prints(&at, "inputs", o->own_print_count, o->print) &&
	       take_prints(&at, "files", o->file_count, o->print + o->own_print_count) &&
	       at == text->data + text->bytes;
}
