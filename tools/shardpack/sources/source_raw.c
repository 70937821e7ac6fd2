/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_raw.c - `shardpack raw`: files that are records of one size, one behind the other
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_pack.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* ---- the records of a file, as a user describes them ---- */

/* "[32,32,3]", all of it; false if it is anything else. */
static bool parse_axes(const char *text, size_t bytes, struct raw_field *f)
{
	struct words axes;

	if (bytes < 3 || text[0] != '[' || text[bytes - 1] != ']')
		return false;
	axes = words_of(text + 1, bytes - 2);
	for (; !words_done(&axes); f->ndim++)
		if (f->ndim == SHARD_DIMS_MAX || !words_u64(&axes, ',', UINT32_MAX, &f->shape[f->ndim]) ||
		    !f->shape[f->ndim])
			return false;
	return true;
}

/* One field, `bytes` long. */
static bool parse_field(const char *text, size_t bytes, struct raw_field *f)
{
	const char *colon = memchr(text, ':', bytes), *type, *bracket;
	size_t type_bytes;

	memset(f, 0, sizeof(*f));
	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(f->name))
		return false;
	memcpy(f->name, text, (size_t)(colon - text));
	type = colon + 1;
	bytes -= (size_t)(type - text);
	f->swap = bytes && *type == '>';
	type += f->swap;
	bytes -= f->swap;
	bracket = memchr(type, '[', bytes);
	type_bytes = bracket ? (size_t)(bracket - type) : bytes;
	f->dtype = text_named(SHARD_NAME_DTYPE, type, type_bytes, SHARD_U8);
	return f->dtype != TEXT_NO_NAME && (!bracket || parse_axes(bracket, bytes - type_bytes, f));
}

static uint64_t field_bytes(const struct raw_field *f)
{
	uint64_t bytes = shard_dtype_bytes(f->dtype);
	for (uint32_t i = 0; i < f->ndim; i++) {
		if (f->shape[i] > RAW_RECORD_BYTES_MAX / bytes)
			return RAW_RECORD_BYTES_MAX + 1;
		bytes *= f->shape[i];
	}
	return bytes;
}

bool raw_schema_parse(const char *text, struct raw_schema *out, char *why, size_t why_bytes)
{
	const char *at = text;

	memset(out, 0, sizeof(*out));
	for (;;) {
		struct raw_field *f = &out->field[out->field_count];
		size_t bytes = 0;
		while (at[bytes] && at[bytes] != ',') {
			bytes += strcspn(at + bytes, ",[");
			if (at[bytes] == '[')
				bytes += strcspn(at + bytes, "]");
		}
		if (out->field_count == 2 * SHARD_FIELDS_MAX || !parse_field(at, bytes, f)) {
			snprintf(why, why_bytes,
				 "'%.*s': a field must be NAME:TYPE or NAME:TYPE[N,...], such as "
				 "image:u8[32,32,3]",
				 (int)(bytes < 100 ? bytes : 100), at);
			return false;
		}
		for (uint32_t i = 0; i < out->field_count; i++)
			if (strcmp(f->name, "-") && !strcmp(f->name, out->field[i].name)) {
				snprintf(why, why_bytes, "field '%s' appears twice", f->name);
				return false;
			}
		f->offset = out->record_bytes;
		out->record_bytes += field_bytes(f);
		out->field_count++;
		if (out->record_bytes > RAW_RECORD_BYTES_MAX) {
			snprintf(why, why_bytes, "a record of more than the limit of %" PRIu64 " bytes",
				 RAW_RECORD_BYTES_MAX);
			return false;
		}
		if (!at[bytes])
			return true;
		at += bytes + 1;
	}
}

static int settle(const struct request *r)
{
	struct raw_schema schema;
	char why[256];

	if (!raw_schema_parse(r->o->schema, &schema, why, sizeof(why)))
		return cli_misuse(r->args, "--schema: %s", why);
	return EXIT_DONE;
}

/* A file that has lost its ending, such as .gz, would be packed as it is. */
static int warn_of_other(const struct request *r, uint32_t file, const char *name)
{
	const struct token_file_other *other;
	uint8_t head[16];
	uint64_t bytes = source_file_bytes(r->source_files, file), have = bytes < sizeof(head) ? bytes : sizeof(head);
	int rc = source_file_get(r->source_files, file, 0, head, (size_t)have);

	other = rc == EXIT_DONE ? token_file_other(head, (size_t)have) : NULL;
	if (other)
		scan_warn(r->scan, "%s: begins as %s does, and its bytes are taken for records; look at one", name,
			  other->what);
	return rc;
}

int raw_file_add(const struct request *r, const char *path, const struct raw_schema *schema, uint64_t skip,
		 const char *remedy)
{
	uint64_t bytes, left;
	uint32_t file, field;
	char *name;
	int rc = input_file_open(r, path, &file);

	if (rc != EXIT_DONE)
		return rc;
	name = source_file_name(r->source_files, file);
	bytes = source_file_bytes(r->source_files, file);
	rc = warn_of_other(r, file, name);
	left = bytes > skip ? (bytes - skip) % schema->record_bytes : 0;
	if (rc == EXIT_DONE && bytes < skip)
		rc = fail(EXIT_BAD, "%s: %" PRIu64 " bytes are less than --skip-bytes %" PRIu64, name, bytes, skip);
	else if (rc == EXIT_DONE && left)
		rc = fail(EXIT_BAD,
			  "%s: %" PRIu64 " bytes%s are %" PRIu64 " records of %" PRIu64 " bytes and %" PRIu64
			  " bytes more, at offset %" PRIu64 "; %s",
			  name, bytes - skip, skip ? " after the skipped ones" : "",
			  (bytes - skip) / schema->record_bytes, schema->record_bytes, left, bytes - left, remedy);
	for (uint32_t i = 0; rc == EXIT_DONE && i < schema->field_count; i++) {
		const struct raw_field *f = &schema->field[i];
		struct fixed_column c = {.file = file,
					 .dtype = f->dtype,
					 .swap = f->swap,
					 .offset = skip + f->offset,
					 .stride = schema->record_bytes,
					 .count = (bytes - skip) / schema->record_bytes};

		if (!strcmp(f->name, "-"))
			continue;
		rc = fixed_fields_enter(r->recipe, "--schema", f->name, f->dtype, f->shape, f->ndim, &field);
		if (rc == EXIT_DONE)
			rc = fixed_fields_add(r->plan, r->recipe, field, &c);
	}
	if (rc == EXIT_DONE && bytes == skip)
		scan_barren(r->scan, name);
	free(name);
	return rc;
}

/* Every record of one file. */
static int add_file(const struct request *r, void *context, const char *path)
{
	return raw_file_add(r, path, context, r->o->skip_bytes, "check --schema and --skip-bytes");
}

static int scan(const struct request *r)
{
	static const struct fixed_source steps = {.add_file = add_file};
	struct raw_schema schema;
	char why[256];

	raw_schema_parse(r->o->schema, &schema, why, sizeof(why)); /* settle() saw that it is one */
	return fixed_source_scan(r, &steps, &schema);
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "FILE", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "files of records, or '-' for a list of files on stdin"},
	{0}};

static const struct cli_option options[] = {
	{.name = "schema", .kind = CLI_STRING, .required = true, AT(schema), .arg_name = "FIELDS",
	 .topic = "input", .often = true,
	 .help = "fields of a record in their order, such as image:u8[32,32,3],label:>i32,-:u8[4]"},
	{.name = "skip-bytes", .kind = CLI_SIZE, AT(skip_bytes), .arg_name = "SIZE", .default_note = "0",
	 .topic = "input", .often = true, .help = "bytes to skip at the start of each file"},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET", .default_note = "no names",
	 .topic = "labels", .often = true, .help = "take names of classes from a file or another dataset"},
	{.name = "strict-classes", .kind = CLI_FLAG, AT(strict_classes), .topic = "labels",
	 .help = "refuse class names that look alike"},
	{0}};
/* clang-format on */

const struct source source_raw = {
	SOURCE_NAMED("raw"), .positionals = positionals, .options = options, .settle = settle, .scan = scan,
};
