/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_shard.c - what the library says of a shard or dataset, in the JSON of `format/shardfmt.py
 * dump`
 *
 *   dump_shard PATH              everything that a shard or folder says, verified first
 *   dump_shard --verdict PATH... a line each: `ok`, or the stage (open, verify), the rule's number
 *   and the status
 *   dump_shard --draw SEED PATH  write the random shard of cases.h that has this seed
 *   dump_shard --dataset DIR     write the dataset of fixture.h
 *
 * For tests/twin/readers.sh, which compares the two implementations.
 */
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/verify/verify.h"
#include "shard_pack.h"
#include "tests/store/cases.h"

/*
 * ---- JSON as Python prints it: keys sorted, one space more for each level, nothing but ASCII ----
 */

static int depth;
static bool first_here = true;

static void line(void)
{
	printf("%s\n%*s", first_here ? "" : ",", depth, "");
	first_here = false;
}

static void open_with(char c)
{
	putchar(c);
	depth++;
	first_here = true;
}

static void close_with(char c)
{
	depth--;
	if (!first_here)
		printf("\n%*s", depth, "");
	putchar(c);
	first_here = false;
}

static void key(const char *name)
{
	line();
	printf("\"%s\": ", name);
}

static void text(const void *data, size_t bytes)
{
	const uint8_t *p = data;

	putchar('"');
	for (size_t i = 0; i < bytes;) {
		uint32_t c = p[i];
		size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		c = n == 1 ? c : c & (0xffu >> (n + 1));
		for (size_t k = 1; k < n; k++)
			c = c << 6 | (p[i + k] & 0x3f);
		i += n;
		if (c == '"' || c == '\\')
			printf("\\%c", (char)c);
		else if (c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f')
			printf("\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\b' ? 'b' : 'f');
		else if (c >= 0x10000)
			printf("\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
		else if (c < 0x20 || c > 0x7e)
			printf("\\u%04x", c);
		else
			putchar((char)c);
	}
	putchar('"');
}

static void word(const char *s)
{
	text(s, strlen(s));
}

static void hex(const uint8_t *p, int bytes, bool high_first)
{
	putchar('"');
	for (int i = 0; i < bytes; i++)
		printf("%02x", p[high_first ? bytes - 1 - i : i]);
	putchar('"');
}

static void number(uint64_t v)
{
	printf("%" PRIu64, v);
}

static void number128(uint64_t low, uint64_t high)
{
	unsigned __int128 v = (unsigned __int128)high << 64 | low;
	char digits[48];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	fputs(digits + at, stdout);
}

/* ---- the parts of a dump ---- */

static void dump_fields(const struct shard_schema *s)
{
	key("fields");
	open_with('[');
	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i];

		line();
		open_with('{');
		key("bytes"), number(f->bytes);
		key("dtype"), word(shard_name(SHARD_NAME_DTYPE, f->dtype));
		key("group"), number(f->group);
		key("kind"), word(shard_name(SHARD_NAME_KIND, f->kind));
		key("layout"), word(shard_name(SHARD_NAME_LAYOUT, f->layout));
		key("length_field");
		if (f->kind == SHARD_TENSOR)
			printf("null");
		else
			number(f->length_field);
		key("name"), word(f->name);
		key("offset"), number(f->offset);
		key("ragged_axes");
		open_with('[');
		for (uint32_t d = 0; d < SHARD_DIMS_MAX; d++)
			if (f->ragged_axes >> d & 1)
				line(), number(d);
		close_with(']');
		key("semantic"), word(shard_name(SHARD_NAME_SEMANTIC, f->semantic));
		key("shape");
		open_with('[');
		for (uint32_t d = 0; d < f->ndim; d++)
			line(), number(f->shape[d]);
		close_with(']');
		close_with('}');
	}
	close_with(']');
}

static void dump_groups(const struct shard_schema *s)
{
	key("groups");
	open_with('[');
	for (uint32_t i = 0; i < s->group_count; i++) {
		const struct shard_group *g = &s->group[i];

		line();
		open_with('{');
		key("align_log2"), number(g->align_log2);
		key("chunk_records"), number(g->chunk_records);
		key("codec"), word(shard_name(SHARD_NAME_CODEC, g->codec));
		key("record_bytes"), number(g->record_bytes);
		key("stride"), number(g->stride);
		key("unit_records"), number(g->unit_records);
		close_with('}');
	}
	close_with(']');
}

/* Statistics through the public calls of a shard or a dataset. */
struct stats {
	struct shard_reader *r;
	struct shard_dataset *ds;
};

static int moments(const struct stats *s, uint32_t f, uint32_t c, struct shard_moments *out)
{
	return s->r ? shard_reader_moments(s->r, f, c, out, &fixture_err)
		    : shard_dataset_moments(s->ds, f, c, out, &fixture_err);
}

static int class_records(const struct stats *s, uint32_t f, uint64_t c, uint64_t *out)
{
	return s->r ? shard_reader_class_records(s->r, f, c, out, &fixture_err)
		    : shard_dataset_class_records(s->ds, f, c, out, &fixture_err);
}

static void dump_stats(const struct stats *s, const struct shard_schema *schema)
{
	struct shard_moments sums;
	uint64_t records;

	key("stats");
	open_with('[');
	for (uint32_t kind = 1; kind <= 2; kind++)
		for (uint32_t f = 0; f < schema->field_count; f++) {
			if (kind == 1 ? moments(s, f, 0, &sums) : class_records(s, f, 0, &records))
				continue;
			line();
			open_with('{');
			key("field"), number(f);
			key("items");
			open_with('[');
			for (uint32_t c = 0; kind == 1 && !moments(s, f, c, &sums); c++) {
				line();
				open_with('[');
				line(), number(sums.count);
				line(), number(sums.sum);
				line(), number128(sums.sum_squares_low, sums.sum_squares_high);
				close_with(']');
			}
			for (uint64_t c = 0; kind == 2 && !class_records(s, f, c, &records); c++)
				line(), number(records);
			close_with(']');
			key("kind"), word(kind == 1 ? "moments" : "classes");
			close_with('}');
		}
	close_with(']');
}

static bool has_section(const struct shard_reader *r, uint32_t type)
{
	struct shard_section s;

	for (uint32_t i = 0; !shard_reader_section(r, i, &s, NULL); i++)
		if (s.type == type)
			return true;
	return false;
}

static void dump_keys(struct shard_reader *r, uint64_t count)
{
	struct shard_view v;

	key("keys");
	if (!has_section(r, SHARD_SECTION_KOFF)) {
		printf("null");
		return;
	}
	open_with('[');
	for (uint64_t i = 0; i < count; i++) {
		CHECK_OK(shard_reader_key(r, i, &v, &fixture_err));
		line(), text(v.data, v.bytes);
	}
	close_with(']');
}

static void dump_records(struct shard_reader *r, const struct shard_schema *s, uint64_t count)
{
	key("records");
	open_with('[');
	for (uint64_t i = 0; i < count; i++) {
		line();
		open_with('[');
		for (uint32_t g = 0; g < s->group_count; g++) {
			uint8_t *record = malloc((size_t)s->group[g].stride);

			CHECK_OK(shard_reader_read(r, g, i, 1, record, &fixture_err));
			line();
			printf("\"%016" PRIx64 "\"", checksum64(record, (size_t)s->group[g].record_bytes));
			free(record);
		}
		close_with(']');
	}
	close_with(']');
}

static void dump_sections(struct shard_reader *r)
{
	struct shard_section s;

	key("sections");
	open_with('[');
	for (uint32_t i = 0; !shard_reader_section(r, i, &s, NULL); i++) {
		line();
		open_with('{');
		key("critical"), printf("%s", r->pages->section[i].flags & SHARD_SECTION_CRITICAL ? "true" : "false");
		key("group"), number(s.group);
		key("hash"), hex(s.hash, 16, true);
		key("items"), number(s.item_count);
		key("length"), number(s.bytes);
		key("offset"), number(s.offset);
		key("type"), number(s.type);
		close_with('}');
	}
	close_with(']');
}

static void dump_reader(struct shard_reader *r)
{
	const struct shard_schema *s = shard_reader_schema(r);
	const struct stats stats = {.r = r};
	struct shard_info info;
	struct shard_miss miss;
	struct shard_view v;

	shard_reader_info(r, &info);
	open_with('{');
	dump_fields(s);
	dump_groups(s);
	dump_keys(r, info.record_count);
	key("missing");
	open_with('[');
	for (uint64_t i = 0; i < info.miss_count; i++) {
		CHECK_OK(shard_reader_miss(r, i, &miss, &fixture_err));
		line();
		open_with('{');
		key("how"), number(miss.how);
		key("ordinal"), number(miss.ordinal);
		key("reason"), number(miss.reason);
		close_with('}');
	}
	close_with(']');
	key("plan_digest"), hex(info.plan_digest, 32, false);
	key("plan_shard"), number(info.plan_shard);
	key("planned_records"), number(info.planned_records);
	key("provenance");
	CHECK_OK(shard_reader_provenance(r, &v, &fixture_err));
	if (has_section(r, SHARD_SECTION_PROV))
		text(v.data, v.bytes);
	else
		printf("null");
	key("record_count"), number(info.record_count);
	dump_records(r, s, info.record_count);
	key("root"), hex(info.root, 16, true);
	dump_sections(r);
	dump_stats(&stats, s);
	close_with('}');
}

static void dump_dataset(const char *dir)
{
	static const char *const orders[] = {"-", "source", "shuffle"};
	struct shard_verify_options o = {.size = sizeof(o), .sha256 = 1, .thread_count = 1};
	const struct shard_schema *s;
	struct stats stats = {NULL, NULL};
	struct shard_dataset_info info;
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, dir, NULL, &fixture_err));
	CHECK_OK(shard_dataset_verify(ds, &o, NULL, &fixture_err));
	shard_dataset_info(ds, &info);
	stats.ds = ds;
	s = shard_dataset_schema(ds);
	open_with('{');
	key("classes");
	open_with('[');
	for (uint64_t i = 0; i < info.class_count; i++)
		line(), word(shard_dataset_class_name(ds, i));
	close_with(']');
	key("contents");
	open_with('[');
	for (uint64_t i = 0; i < info.shard_count; i++) {
		struct shard_reader *r;

		CHECK_OK(shard_dataset_reader(ds, i, &r, &fixture_err));
		line(), dump_reader(r);
	}
	close_with(']');
	dump_fields(s);
	dump_groups(s);
	key("id"), word(info.id);
	key("order");
	if (info.order == SHARD_ORDER_SHUFFLE)
		printf("\"shuffle %" PRIu64 "\"", info.seed);
	else
		word(orders[info.order]);
	key("plan");
	if (info.has_plan_digest)
		hex(info.plan_digest, 32, false);
	else
		printf("null");
	key("record_count"), number(info.record_count);
	key("shards");
	open_with('[');
	for (uint64_t i = 0; i < info.shard_count; i++) {
		struct shard_entry e;

		CHECK_OK(shard_dataset_entry(ds, i, &e, &fixture_err));
		line();
		open_with('{');
		key("bytes"), number(e.file_bytes);
		key("file"), text(e.file, e.file_name_bytes);
		key("records"), number(e.record_count);
		key("root"), hex(e.root, 16, true);
		key("sha256"), hex(e.sha256, 32, false);
		close_with('}');
	}
	close_with(']');
	dump_stats(&stats, s);
	close_with('}');
	shard_dataset_close(ds);
}

/* ---- verdicts ---- */

/* "a/b: I13: text" to I13: the first word of a capital and digits that stands before a colon. */
static void print_rule(const char *message)
{
	for (const char *at = message; at; at = strstr(at, ": ")) {
		size_t n;

		at += at == message ? 0 : 2;
		n = *at && strchr("IMD", *at) ? 1 + strspn(at + 1, "0123456789") : 0;
		if (n > 1 && at[n] == ':') {
			printf("%.*s", (int)n, at);
			return;
		}
	}
	printf("?");
}

static void print_verdict(const char *path)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds = NULL;
	struct shard_reader *r = NULL;
	const char *stage = "open";
	struct stat st;
	int rc;

	CHECK_EQ(stat(path, &st), 0);
	rc = S_ISDIR(st.st_mode) ? shard_dataset_open(&ds, path, NULL, &err) : shard_reader_open(&r, path, NULL, &err);
	if (!rc) {
		stage = "verify";
		rc = r ? shard_reader_verify(r, &o, NULL, &err) : dataset_verify_manifest(ds, &err);
	}
	shard_dataset_close(ds);
	shard_reader_close(r);
	if (!rc) {
		printf("ok\n");
		return;
	}
	printf("%s ", stage);
	print_rule(err.message);
	printf(" %s\n", shard_status_name(rc));
}

int main(int argc, char **argv)
{
	const uint64_t sizes[] = {5, 0, 9};
	struct shard_schema schema;
	struct shard_written written;

	if (argc > 2 && !strcmp(argv[1], "--verdict")) {
		for (int i = 2; i < argc; i++)
			print_verdict(argv[i]);
	} else if (argc == 4 && !strcmp(argv[1], "--draw")) {
		draw(strtoull(argv[2], NULL, 10));
		CHECK_OK(write_case(strtoull(argv[2], NULL, 10), argv[3], &written));
		undraw();
	} else if (argc == 3 && !strcmp(argv[1], "--dataset")) {
		schema = photo_schema(8, SHARD_LZ4);
		write_dataset(argv[2], &schema, sizes, COUNT(sizes));
	} else if (argc == 2) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
		struct shard_reader *r;
		struct stat st;

		CHECK_EQ(stat(argv[1], &st), 0);
		if (S_ISDIR(st.st_mode)) {
			dump_dataset(argv[1]);
		} else {
			CHECK_OK(shard_reader_open(&r, argv[1], NULL, &fixture_err));
			CHECK_OK(shard_reader_verify(r, &o, NULL, &fixture_err));
			dump_reader(r);
			shard_reader_close(r);
		}
		printf("\n");
	} else {
		fprintf(stderr, "usage: dump_shard [--verdict] PATH... | --draw SEED PATH | --dataset DIR\n");
		return 2;
	}
	return 0;
}
