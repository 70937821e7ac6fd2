/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_array.c - `shardpack array`: arrays of NumPy, whose first axis counts the records
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

#define RECORD_BYTES_MAX (UINT64_C(1) << 30) /* format/SHARD.md; seen to here, before gigabytes are transposed */

#define PAIRS_REMEDY                                                                                              \
	"put arrays that belong together into one folder (a/x.npy, a/label.npy) or one .npz, or join those of a " \
	"field with numpy.concatenate"

#define RECORD_REMEDY "; if each is a record, join them with numpy.stack"

enum numbered { NUMBERED_REFUSE, NUMBERED_PARTS, NUMBERED_FIELDS }; /* as the choices of the option */

/* The files x_0.npy, x_1.npy: "x", for each of them. */
struct stems {
	char **name; /* sorted */
	size_t count;
};

struct arrays {
	uint64_t unnamed_count;
	struct fixed_parts parts;
	struct stems stems;
	uint32_t from_file; /* which fields are files of their own, a bit for each */
};

static int check_size(const struct npy *a, const struct array_bytes *p)
{
	uint32_t zero;

	if (!a->ndim)
		return fail(EXIT_BAD, "%s: a single value; the first axis of an array counts the records", p->where);
	if (a->ndim > SHARD_DIMS_MAX + 1)
		return fail(EXIT_UNSUPPORTED, "%s: %" PRIu32 " axes; the limit is %d", p->where, a->ndim,
			    SHARD_DIMS_MAX + 1);
	if (p->bytes != a->data_offset + a->data_bytes)
		return fail(EXIT_BAD,
			    "%s: has %" PRIu64 " bytes, but must have a head of %" PRIu64 " and data of "
			    "%" PRIu64 "; it is %s",
			    p->where, p->bytes, a->data_offset, a->data_bytes,
			    p->bytes < a->data_offset + a->data_bytes ? "cut short" : "longer than it should be");
	for (zero = 0; zero < a->ndim && a->shape[zero]; zero++)
		;
	if (zero < a->ndim)
		return fail(EXIT_BAD, "%s: an array without elements (axis %" PRIu32 " is 0); leave it out", p->where,
			    zero);
	if (a->data_bytes / a->shape[0] > RECORD_BYTES_MAX)
		return fail(EXIT_UNSUPPORTED,
			    "%s: records of %" PRIu64 " bytes; the limit is %" PRIu64
			    " (the first axis counts the records)",
			    p->where, a->data_bytes / a->shape[0], RECORD_BYTES_MAX);
	return EXIT_DONE;
}

int array_add(const struct request *r, const struct array_bytes *p, const struct npy *a)
{
	struct fixed_column c = {.dtype = a->dtype, .swap = a->swap, .offset = p->offset + a->data_offset};
	uint32_t field;
	char how[256]; /* "fortran,128,4,1000,3,32,32": what unpack.c makes of it is in C's order */
	size_t at;
	int rc = check_size(a, p);

	if (rc != EXIT_DONE)
		return rc;
	c.stride = a->data_bytes / a->shape[0];
	c.count = a->shape[0];
	rc = fixed_fields_enter(r->recipe, p->where, p->name, a->dtype, a->shape + 1, a->ndim - 1, &field);
	c.file = p->file;
	if (rc == EXIT_DONE && a->fortran && a->ndim > 1) {
		at = (size_t)snprintf(how, sizeof(how), "fortran,%" PRIu64 ",%zu", c.offset,
				      shard_dtype_bytes(a->dtype));
		for (uint32_t i = 0; i < a->ndim && at < sizeof(how); i++)
			at += (size_t)snprintf(how + at, sizeof(how) - at, ",%" PRIu64, a->shape[i]);
		rc = source_files_unpack(r->source_files, r->plan, p->file, how, a->data_bytes, &c.file);
		c.offset = 0;
	}
	return rc == EXIT_DONE ? fixed_fields_add(r->plan, r->recipe, field, &c) : rc;
}

static int add_npy(const struct request *r, const struct array_bytes *p, uint64_t *unnamed_count)
{
	uint64_t have = p->bytes < NPY_HEAD_BYTES_MAX ? p->bytes : NPY_HEAD_BYTES_MAX;
	uint8_t *head = xmalloc(NPY_HEAD_BYTES_MAX, 1);
	struct npy a;
	char why[256];
	int rc = source_file_get(r->source_files, p->file, p->offset, head, (size_t)have);

	if (rc == EXIT_DONE && !npy_parse(head, (size_t)have, &a, why, sizeof(why)))
		rc = fail(EXIT_BAD, "%s: %s%s", p->where, why,
			  (size_t)have > NPY_MAGIC_BYTES && !memcmp(head, NPY_MAGIC, NPY_MAGIC_BYTES)
				  ? ""
				  : "; write it with numpy.save(), or pack records of one size with `shardpack raw`");
	free(head);
	*unnamed_count += rc == EXIT_DONE && a.unnamed;
	if (rc == EXIT_DONE && a.unnamed && !r->o->v2) /* its bytes could be anything, so a user has to say it */
		rc = fail(EXIT_BAD,
			  "%s: dtype 'V2' does not say what its two bytes are; ml_dtypes saves bfloat16 so: if it is "
			  "that, say --v2 bf16",
			  p->where);
	return rc == EXIT_DONE ? array_add(r, p, &a) : rc;
}

/* "train/x.npy" to "x", "x.left.npy.gz" to "x.left".  Whole, so that two long names remain two. */
static void field_name(const char *path, char out[PLAN_PATH_BYTES_MAX])
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *end = strstr(base, ".npy");
	size_t bytes = end ? (size_t)(end - base) : strcspn(base, ".");

	snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s", (int)bytes, base);
}

/* ---- files whose names differ in a number ---- */

/* "img_emb_10" to "img_emb", and 10 from there on; false if it has no number, or nothing else. */
static bool split_number(const char *name, size_t *stem_bytes, uint64_t *number)
{
	size_t bytes = strlen(name), digits = 0, stem;

	while (digits < bytes && name[bytes - digits - 1] >= '0' && name[bytes - digits - 1] <= '9')
		digits++;
	stem = bytes - digits;
	if (!digits || digits > 18)
		return false;
	stem -= stem && strchr("_-.", name[stem - 1]);
	*stem_bytes = stem;
	*number = strtoull(name + bytes - digits, NULL, 10);
	return stem > 0;
}

static int compare_stems(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_stems(const struct request *r, struct stems *out)
{
	char name[PLAN_PATH_BYTES_MAX];
	uint64_t number;
	size_t bytes;

	out->name = xcalloc(r->root->item_count + 1, sizeof(*out->name));
	for (uint64_t i = 0; i < r->root->item_count; i++) {
		const struct source_item *item = &r->root->item[i];

		field_name(item->path, name);
		if (item->is_dir || file_name_has_extension(item->path, ".npz") || !split_number(name, &bytes, &number))
			continue;
		out->name[out->count++] = xstrndup(name, bytes);
	}
	qsort(out->name, out->count, sizeof(*out->name), compare_stems);
}

/* Cut the number off the name of one of several such files; the number from 1 on, or 0. */
static uint64_t cut_number(const struct stems *s, char *name)
{
	char **found, digit;
	uint64_t number;
	size_t bytes;

	if (!split_number(name, &bytes, &number))
		return 0;
	digit = name[bytes];
	name[bytes] = '\0';
	found = bsearch(&name, s->name, s->count, sizeof(*s->name), compare_stems);
	if (found && ((found > s->name && !strcmp(found[-1], name)) ||
		      (found + 1 < s->name + s->count && !strcmp(found[1], name))))
		return number + 1;
	name[bytes] = digit;
	return 0;
}

/* Fields x_0 and x_1 of one shape may be meant as one field x. */
static int refuse_numbered(const struct request *r, const struct arrays *a)
{
	const struct recipe *q = r->recipe;
	size_t bytes, other_bytes;
	uint64_t number;

	for (uint32_t i = 0; i < q->field_count; i++) {
		if (!(a->from_file >> i & 1) || !split_number(q->field[i].name, &bytes, &number))
			continue;
		for (uint32_t k = i + 1; k < q->field_count; k++)
			if (a->from_file >> k & 1 && split_number(q->field[k].name, &other_bytes, &number) &&
			    bytes == other_bytes && !memcmp(q->field[i].name, q->field[k].name, bytes) &&
			    fixed_fields_same(&q->field[i], &q->field[k]))
				return fail(EXIT_BAD,
					    "%s.npy and %s.npy differ in a number: say --numbered parts if their rows "
					    "follow each other in one field %.*s, or --numbered fields if each is a "
					    "field" RECORD_REMEDY,
					    q->field[i].name, q->field[k].name, (int)bytes, q->field[i].name);
	}
	return EXIT_DONE;
}

/* ---- .npz: a ZIP of arrays ---- */

struct archive {
	const struct request *r;
	struct arrays *arrays;
	const char *path;
	uint32_t file;
	const char *where;
};

static bool read_stored(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct archive *a = context;

	return source_file_get(a->r->source_files, a->file, offset, out, bytes) == EXIT_DONE;
}

/* A member that is stored is read where it lies, so its checksum is compared now. */
static int check_crc(const struct archive *a, const struct zip_member *m)
{
	uint8_t piece[65536];
	uint64_t n;
	uint32_t crc = 0;
	int rc = EXIT_DONE;

	for (uint64_t at = 0; rc == EXIT_DONE && at < m->bytes; at += n) {
		n = m->bytes - at < sizeof(piece) ? m->bytes - at : sizeof(piece);
		rc = interrupted() ? EXIT_INTERRUPTED
				   : source_file_get(a->r->source_files, a->file, m->offset + at, piece, (size_t)n);
		if (rc == EXIT_DONE)
			crc = (uint32_t)crc32(crc, piece, (uInt)n);
	}
	if (rc == EXIT_DONE && crc != m->crc)
		rc = fail(EXIT_BAD,
			  "%s: '%s' at offset %" PRIu64 " is damaged: its CRC-32 is %08" PRIx32 "; the "
			  "directory says %08" PRIx32,
			  a->where, m->name, m->offset, crc, m->crc);
	return rc;
}

/*
 * Files of one field are joined, but an archive has each array once: two would be twice the
 * records.
 */
static int refuse_second(const struct archive *a, const struct zip_member *m, const char *name)
{
	const struct recipe *r = a->r->recipe;
	const struct plan *p = a->r->plan;
	for (uint64_t i = 0; i < p->slice_count; i++)
		if (p->slice[i].file >= a->file && !strcmp(r->field[p->slice[i].field].name, name))
			return fail(EXIT_BAD,
				    "%s: '%s' at offset %" PRIu64
				    " is a second array for field '%s'; save each under a name of its own",
				    a->where, m->name, m->offset, name);
	return EXIT_DONE;
}

static int add_member(const struct archive *a, const struct zip_member *m)
{
	char name[PLAN_PATH_BYTES_MAX], how[128], *where;
	struct array_bytes p = {.file = a->file, .offset = m->offset, .bytes = m->bytes, .name = name};
	int rc = EXIT_DONE;

	if (m->name_bytes < 4 || strcmp(m->name + m->name_bytes - 4, ".npy"))
		return fail(EXIT_BAD, "%s: '%s' is not an array; save arrays with numpy.savez", a->where, m->name);
	field_name(m->name, name);
	rc = refuse_second(a, m, name);
	if (rc == EXIT_DONE && m->method == ZIP_STORED) {
		rc = check_crc(a, m);
	} else if (rc == EXIT_DONE) {
		snprintf(how, sizeof(how), "deflate,%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64, m->offset,
			 m->packed_bytes, m->crc, m->bytes);
		rc = source_files_unpack(a->r->source_files, a->r->plan, a->file, how, m->bytes, &p.file);
		p.offset = 0;
		if (rc == EXIT_DONE && source_file_bytes(a->r->source_files, p.file) != m->bytes)
			rc = fail(EXIT_BAD, "%s: '%s' has %" PRIu64 " bytes unpacked; the directory says %" PRIu64,
				  a->where, m->name, source_file_bytes(a->r->source_files, p.file), m->bytes);
	}
	where = xasprintf("%s/%s", a->where, m->name);
	p.where = where;
	if (rc == EXIT_DONE)
		rc = add_npy(a->r, &p, &a->arrays->unnamed_count);
	if (rc == EXIT_DONE)
		fixed_parts_add(&a->arrays->parts, a->r, a->path, 0, where);
	free(where);
	return rc;
}

static int add_archive(const struct request *r, uint32_t file, const char *path, const char *where,
		       struct arrays *arrays)
{
	struct archive a = {.r = r, .arrays = arrays, .path = path, .file = file, .where = where};
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {
		.bytes = source_file_bytes(r->source_files, file), .read = read_stored, .context = &a, .why = why};
	struct zip_member *m = xmalloc(1, sizeof(*m));
	enum zip_status status = ZIP_END;
	uint64_t count = 0;
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		rc = add_member(&a, m);
		count++;
	}
	free(m);
	if (rc == EXIT_DONE && status == ZIP_END && !count)
		scan_barren(r->scan, where);
	if (rc == EXIT_DONE && status == ZIP_BAD)
		rc = why[0] ? fail(EXIT_BAD, "%s: %s", where, why) : EXIT_IO;
	return rc;
}

/* ---- files ---- */

static int add_file(const struct request *r, void *context, const char *path)
{
	char name[PLAN_PATH_BYTES_MAX], folder[PLAN_PATH_BYTES_MAX], *where;
	struct array_bytes p = {.name = name};
	struct arrays *a = context;
	uint64_t number;
	int rc = input_file_open(r, path, &p.file);

	if (rc != EXIT_DONE)
		return rc;
	where = source_file_name(r->source_files, p.file);
	if (file_name_has_extension(path, ".npz")) {
		rc = add_archive(r, p.file, path, where, a);
		free(where);
		return rc;
	}
	field_name(path, name);
	number = r->o->numbered == NUMBERED_PARTS ? cut_number(&a->stems, name) : 0;
	p.where = where;
	p.bytes = source_file_bytes(r->source_files, p.file);
	rc = add_npy(r, &p, &a->unnamed_count);
	if (rc == EXIT_DONE) { /* parts of other fields with its records lie in the same folder */
		a->from_file |= UINT32_C(1) << r->plan->slice[r->plan->slice_count - 1].field;
		snprintf(folder, sizeof(folder), "%.*s", (int)files_folder_bytes(path), path);
		fixed_parts_add(&a->parts, r, folder, number, where);
	}
	free(where);
	return rc;
}

static int pair(const struct request *r, void *context, struct classes *unused)
{
	struct arrays *a = context;
	int rc = r->o->numbered == NUMBERED_REFUSE ? refuse_numbered(r, a) : EXIT_DONE;

	(void)unused;
	return rc == EXIT_DONE ? fixed_parts_pair(&a->parts, r, PAIRS_REMEDY) : rc;
}

static int scan(const struct request *r)
{
	static const struct fixed_source steps = {.add_file = add_file, .end = pair};
	struct arrays a = {.unnamed_count = 0};
	int rc;

	find_stems(r, &a.stems);
	rc = fixed_source_scan(r, &steps, &a);
	if (rc == EXIT_DONE && r->o->v2 && !a.unnamed_count)
		rc = fail(EXIT_BAD, "--v2 bf16: no array has dtype V2; leave it out, other arrays keep their type");
	fixed_parts_free(&a.parts);
	for (size_t i = 0; i < a.stems.count; i++)
		free(a.stems.name[i]);
	free(a.stems.name);
	return rc;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "FILE", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "files of arrays: .npz; .npy, where x.npy becomes the field `x`; or '-' for a list of files on stdin"},
	{0}};

static const struct cli_option options[] = {
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET", .default_note = "no names",
	 .topic = "labels", .often = true, .help = "take names of classes from a file or another dataset"},
	{.name = "strict-classes", .kind = CLI_FLAG, AT(strict_classes), .topic = "labels",
	 .help = "refuse class names that look alike"},
	{.name = "v2", .kind = CLI_CHOICE, AT(v2), .arg_name = "TYPE", .choices = "refuse|bf16", .default_value = "refuse",
	 .topic = "input", .help = "how to read arrays of dtype V2"},
	{.name = "numbered", .kind = CLI_CHOICE, AT(numbered), .arg_name = "WHAT", .choices = "refuse|parts|fields",
	 .default_value = "refuse", .topic = "input", .often = true,
	 .help = "how to read x_0.npy and x_1.npy: as parts of one field, or as two fields"},
	{0}};
/* clang-format on */

const struct source source_array = {
	SOURCE_NAMED("array"),
	.positionals = positionals,
	.options = options,
	.scan = scan,
};
