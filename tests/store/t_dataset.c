/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_dataset.c - shards as one index space, what the manifest says of them, and shards that are not
 * what it says
 */
#include <fcntl.h>

#include "shard_pack.h"
#include "tests/store/fixture.h"

static const uint64_t sizes[] = {7, 1, 0, 12, 30}; /* boundaries at 7, 8, 8, 20; one shard is empty */
#define RECORDS 50u

static struct path folder;
static char key_text[SHARD_KEY_BYTES_MAX];
static size_t key_bytes;
static struct shard_schema schema;

static void make_dataset(uint32_t codec)
{
	schema = photo_schema(20, codec);
	schema.group[0].unit_records = 4;
	schema.group[0].chunk_records = codec == SHARD_RAW ? 0 : 4;
	new_folder(&folder, "t_dataset");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

static struct shard_dataset *open_with(uint32_t check, uint32_t guard)
{
	struct shard_dataset_options o = {.size = sizeof(o), .check = check, .guard = guard};
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, folder.text, &o, &fixture_err));
	return ds;
}

static struct shard_dataset *open_dataset(void)
{
	return open_with(SHARD_CHECK_DEVICE, SHARD_GUARD_ON);
}

static const char *in_folder(struct path *p, const char *name)
{
	return tmp(p, "t_dataset.%d/%s", (int)getpid(), name);
}

#define MANY 700u /* more than are copied at once */

/* With SHARD_CHECK_ALWAYS each record is read by itself; with the others, those that were checked before are not. */
TEST(records_in_any_order)
{
	static const struct {
		uint32_t codec, check, guard;
	} rows[] = {
		{SHARD_RAW, SHARD_CHECK_DEVICE, SHARD_GUARD_ON},  {SHARD_LZ4, SHARD_CHECK_DEVICE, SHARD_GUARD_ON},
		{SHARD_RAW, SHARD_CHECK_ALWAYS, SHARD_GUARD_ON},  {SHARD_RAW, SHARD_CHECK_FIRST, SHARD_GUARD_ON},
		{SHARD_RAW, SHARD_CHECK_NEVER, SHARD_GUARD_ON},	  {SHARD_LZ4, SHARD_CHECK_NEVER, SHARD_GUARD_ON},
		{SHARD_RAW, SHARD_CHECK_DEVICE, SHARD_GUARD_OFF},
	};
	uint64_t strides[2];
	uint8_t *dst[2];

	for (size_t row = 0; row < COUNT(rows); row++) {
		struct prng p = {row};
		struct shard_dataset *ds;

		make_dataset(rows[row].codec);
		ds = open_with(rows[row].check, rows[row].guard);
		for (int g = 0; g < 2; g++) {
			strides[g] = schema.group[g].stride;
			dst[g] = malloc((size_t)(MANY * strides[g]));
		}
		for (int turn = 0; turn < 40; turn++) {
			size_t count = (size_t)prng_below(&p, turn % 4 ? 100 : MANY);
			void *wanted[2] = {turn % 3 == 1 ? NULL : dst[0], turn % 3 == 2 ? NULL : dst[1]};
			uint64_t idx[MANY];

			STORY("codec %u, check %u, guard %u, turn %d, %zu records", rows[row].codec, rows[row].check,
			      rows[row].guard, turn, count);
			for (size_t i = 0; i < count; i++)
				idx[i] = turn ? prng_below(&p, RECORDS) : i % RECORDS; /* repeated ones, too */
			memset(dst[0], 0xee, (size_t)(MANY * strides[0]));
			memset(dst[1], 0xee, (size_t)(MANY * strides[1]));
			CHECK_OK(shard_dataset_read(ds, idx, count, wanted, &fixture_err));
			for (uint32_t g = 0; g < 2; g++)
				for (size_t i = 0; i < MANY; i++) {
					if (wanted[g] && i < count)
						check_photo(&schema, g, idx[i], dst[g] + i * strides[g]);
					else
						CHECK_EQ(dst[g][i * strides[g]], 0xee);
				}
		}
		free(dst[0]);
		free(dst[1]);
		shard_dataset_close(ds);
	}
	shard_dataset_close(NULL);
}

/* A unit of group 0 is 4 records.  All but one were checked before; then a byte of that one changes. */
TEST(among_records_that_were_checked_the_others_are)
{
	const uint64_t first = 20, victim = 8; /* in the last shard */
	struct shard_dataset *ds, *always;
	uint64_t idx[MANY], known = 0;
	struct prng p = {5};
	uint8_t *record;
	void *dst[2];

	make_dataset(SHARD_RAW);
	ds = open_dataset();
	always = open_with(SHARD_CHECK_ALWAYS, SHARD_GUARD_ON);
	dst[0] = record = malloc(MANY * schema.group[0].stride);
	dst[1] = NULL;
	for (uint64_t i = 0; i < RECORDS; i++)
		if (i < first + victim || i >= first + victim + 4)
			idx[known++] = i;
	CHECK_EQ(known, RECORDS - 4);
	CHECK_OK(shard_dataset_read(ds, idx, known, dst, &fixture_err));
	damage_record(&folder, 4, 0, victim * schema.group[0].stride);
	for (uint64_t i = known; i < MANY; i++)
		idx[i] = idx[prng_below(&p, known)];
	CHECK_OK(shard_dataset_read(ds, idx, MANY, dst, &fixture_err));
	CHECK_OK(shard_dataset_read(always, idx, MANY, dst, &fixture_err));
	for (size_t at = 0; at < MANY; at += 233) { /* in each block */
		uint64_t was = idx[at];
		struct shard_error err = {.message = ""};

		STORY("the record of the damaged unit is number %zu", at);
		idx[at] = first + victim + at % 4;
		CHECK_EQ(shard_dataset_read(ds, idx, MANY, dst, &err), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, ": I44: unit 2 of group 0"));
		CHECK_EQ(shard_dataset_read(always, idx, MANY, dst, NULL), SHARD_E_CORRUPT);
		idx[at] = was;
	}
	CHECK_OK(shard_dataset_read(ds, idx, MANY, dst, &fixture_err));
	free(record);
	shard_dataset_close(always);
	shard_dataset_close(ds);
}

TEST(keys_and_boundaries)
{
	struct shard_dataset *ds;
	struct shard_error err;
	uint64_t none = RECORDS;
	void *dst[2] = {NULL, NULL};

	make_dataset(SHARD_RAW);
	ds = open_dataset();
	for (uint64_t i = 0; i < RECORDS; i++) {
		char key[64];

		CHECK_OK(shard_dataset_key(ds, i, key_text, &key_bytes, &fixture_err));
		CHECK_EQ(key_bytes, photo_key(i, key));
		CHECK_MEM(key_text, key, key_bytes);
	}
	key_bytes = 77;
	CHECK_EQ(shard_dataset_key(ds, RECORDS, key_text, &key_bytes, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "no record 50; the dataset has 50"));
	CHECK_EQ(shard_dataset_key(ds, UINT64_MAX, key_text, &key_bytes, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(key_bytes, 77);
	CHECK_EQ(shard_dataset_read(ds, &none, 1, dst, &err), SHARD_E_ARGUMENT);
	CHECK_OK(shard_dataset_read(ds, NULL, 0, dst, &fixture_err));
	shard_dataset_close(ds);
}

TEST(entries_are_those_of_the_manifest)
{
	struct shard_dataset *ds;
	struct shard_dataset_info info;
	struct shard_error err;
	struct shard_entry e;
	struct shard_view text;
	uint8_t digest[32], *file;
	uint64_t first = 0, all = 0;
	size_t bytes;
	struct path p;
	char id[65];

	make_dataset(SHARD_RAW);
	ds = open_dataset();
	for (uint64_t i = 0; i < COUNT(sizes); i++) {
		struct shard_reader *r, *again;
		struct shard_info shard;
		char name[32];

		STORY("shard %" PRIu64, i);
		snprintf(name, sizeof(name), "%" PRIu64 ".shard", i);
		CHECK_OK(shard_dataset_entry(ds, i, &e, &fixture_err));
		CHECK_EQ(e.file_name_bytes, strlen(name));
		CHECK_MEM(e.file, name, strlen(name));
		CHECK_EQ(e.record_count, sizes[i]);
		CHECK_EQ(e.first_record, first);
		file = file_bytes(in_folder(&p, name), &bytes);
		shard_sha256(file, bytes, digest);
		free(file);
		CHECK_EQ(e.file_bytes, bytes);
		CHECK_MEM(e.sha256, digest, 32);
		CHECK_OK(shard_dataset_reader(ds, i, &r, &fixture_err));
		CHECK_OK(shard_dataset_reader(ds, i, &again, &fixture_err));
		CHECK(r == again);
		shard_reader_info(r, &shard);
		CHECK_MEM(e.root, shard.root, 16);
		CHECK_EQ(shard.plan_shard, first);
		first += sizes[i];
		all += bytes;
	}
	CHECK_EQ(shard_dataset_entry(ds, COUNT(sizes), &e, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "no shard 5; the dataset has 5"));
	shard_dataset_info(ds, &info);
	CHECK_EQ(info.record_count, RECORDS);
	CHECK_EQ(info.shard_count, COUNT(sizes));
	CHECK_EQ(info.class_count, PHOTO_CLASSES);
	CHECK_EQ(info.data_bytes, all);
	CHECK_EQ(info.order, SHARD_ORDER_SHUFFLE);
	CHECK_EQ(info.seed, 7);
	CHECK_EQ(info.has_plan_digest, 0);
	shard_dataset_manifest(ds, &text);
	file = file_bytes(in_folder(&p, "dataset.manifest"), &bytes);
	CHECK_EQ(text.bytes, bytes);
	CHECK_MEM(text.data, file, bytes);
	CHECK_MEM(file + bytes - 102, "end ", 4);
	memcpy(id, file + bytes - 98, 64);
	id[64] = 0;
	CHECK_STR(info.id, id);
	free(file);
	shard_dataset_close(ds);
}

TEST(schema_classes_and_statistics)
{
	static const char *const names[] = {"a", "b", "zw\xc3\xb6lf", "d d", "%"};
	struct shard_dataset *ds;
	const struct shard_field *f;
	uint64_t records;

	make_dataset(SHARD_RAW);
	ds = open_dataset();
	CHECK_MEM(shard_dataset_schema(ds), &schema, sizeof(schema));
	f = shard_schema_find(shard_dataset_schema(ds), "label");
	CHECK(f == &shard_dataset_schema(ds)->field[PHOTO_LABEL]);
	CHECK_EQ(f->stride, schema.group[1].stride);
	CHECK(!shard_schema_find(shard_dataset_schema(ds), "labels"));
	for (size_t i = 0; i < COUNT(names); i++)
		CHECK_STR(shard_dataset_class_name(ds, i), names[i]);
	CHECK(!shard_dataset_class_name(ds, PHOTO_CLASSES));
	CHECK(!shard_dataset_class_name(ds, UINT64_MAX));
	for (uint32_t c = 0; c < 3; c++) { /* of all records, computed here */
		struct shard_moments want = {0, 0, 0, 0}, got;
		uint8_t pixels[1200];

		for (uint64_t i = 0; i < RECORDS; i++) {
			photo_record(&schema, 0, i, pixels);
			for (size_t k = c; k < 1200; k += 3) {
				want.count++;
				want.sum += pixels[k];
				want.sum_squares_low += (uint64_t)pixels[k] * pixels[k];
			}
		}
		CHECK_OK(shard_dataset_moments(ds, PHOTO_IMAGE, c, &got, &fixture_err));
		CHECK_MEM(&got, &want, sizeof(want));
	}
	for (uint64_t c = 0; c < PHOTO_CLASSES; c++) {
		CHECK_OK(shard_dataset_class_records(ds, PHOTO_LABEL, c, &records, &fixture_err));
		CHECK_EQ(records, RECORDS / PHOTO_CLASSES);
	}
	CHECK_EQ(shard_dataset_class_records(ds, PHOTO_LABEL, PHOTO_CLASSES, &records, NULL), SHARD_END);
	CHECK_EQ(shard_dataset_class_records(ds, PHOTO_IMAGE, 0, &records, NULL), SHARD_END);
	CHECK_EQ(shard_dataset_class_records(ds, UINT32_MAX, 0, &records, NULL), SHARD_END);
	CHECK_EQ(shard_dataset_moments(ds, PHOTO_IMAGE, 3, NULL, NULL), SHARD_END);
	CHECK_EQ(shard_dataset_moments(ds, PHOTO_WEIGHT, 0, NULL, NULL), SHARD_END);
	CHECK_EQ(shard_dataset_moments(ds, 24, 0, NULL, NULL), SHARD_END);
	shard_dataset_close(ds);
}

/* ---- shards that are not what the manifest says ---- */

TEST(what_is_wrong_with_one_shard_is_said_when_it_is_used)
{
	static const struct {
		const char *story;
		int what;
		int want;
		const char *says;
	} rows[] = {
		{"not there", 1, SHARD_E_MISMATCH, "3.shard: D1: "},
		{"another size", 2, SHARD_E_MISMATCH, "3.shard: D2: "},
		{"the same size, but another shard", 3, SHARD_E_MISMATCH, "3.shard: D3: "},
		{"damaged header", 4, SHARD_E_CORRUPT, "3.shard: I3: "},
		{"damaged footer", 5, SHARD_E_CORRUPT, "3.shard: I5: "},
		{"cut", 6, SHARD_E_CORRUPT, "3.shard: I4: "},
		{"cut", 6, SHARD_E_CORRUPT, "; the file has 20480 bytes, and the manifest says "},
		{"empty", 7, SHARD_E_CORRUPT, "3.shard: I1: "},
		{"a folder", 8, SHARD_E_IO, "3.shard: is a folder"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = ""};
		struct path victim, other;
		struct shard_dataset *ds;
		struct shard_reader *r;

		STORY("%s", rows[i].story);
		make_dataset(SHARD_RAW);
		in_folder(&victim, "3.shard");
		in_folder(&other, "other");
		switch (rows[i].what) {
		case 1:
			unlink(victim.text);
			break;
		case 2:
			CHECK_EQ(rename(in_folder(&other, "4.shard"), victim.text), 0);
			break;
		case 3:
			write_photos(other.text, &schema, 100, 12, NULL);
			CHECK_EQ(rename(other.text, victim.text), 0);
			break;
		case 4:
			file_flip(victim.text, 0x40, 4);
			break;
		case 5:
			file_flip(victim.text, section_of(victim.text, 8, 0).offset + 4096 + 0x20, 4);
			break;
		case 6:
			CHECK_EQ(truncate(victim.text, 20480), 0);
			break;
		case 7:
			CHECK_EQ(truncate(victim.text, 0), 0);
			break;
		default:
			unlink(victim.text);
			CHECK_EQ(mkdir(victim.text, 0755), 0);
		}
		ds = open_dataset();
		CHECK_OK(shard_dataset_key(ds, 19 - 12, key_text, &key_bytes,
					   &fixture_err)); /* its neighbours do not care */
		CHECK_EQ(shard_dataset_key(ds, 8, key_text, &key_bytes, &err), rows[i].want);
		if (!strstr(err.message, rows[i].says))
			CHECK_STR(err.message, rows[i].says);
		CHECK(strstr(err.message, folder.text) == err.message);
		CHECK_EQ(shard_dataset_reader(ds, 3, &r, NULL), rows[i].want); /* and again */
		shard_dataset_close(ds);
		rmdir(victim.text);
	}
}

TEST(another_schema_of_the_same_size_is_another_shard)
{
	struct shard_error err = {.message = ""};
	struct shard_dataset *ds;
	struct path victim;

	make_dataset(SHARD_RAW);
	in_folder(&victim, "3.shard");
	unlink(victim.text);
	schema.field[PHOTO_WEIGHT].semantic = SHARD_MASK;
	write_photos(victim.text, &schema, 8, 12, NULL);
	ds = open_dataset();
	CHECK_EQ(shard_dataset_key(ds, 8, key_text, &key_bytes, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, ": D3: ")); /* the root covers the schema */
	shard_dataset_close(ds);
}

TEST(manifests_that_cannot_be_opened)
{
	static const struct {
		const char *story, *text;
		int want;
		const char *says;
	} rows[] = {
		{"none", NULL, SHARD_E_IO, "dataset.manifest: cannot be opened: No such file"},
		{"empty", "", SHARD_E_CORRUPT, "dataset.manifest: M1"},
		{"something else", "hello\n", SHARD_E_CORRUPT, "dataset.manifest: M1"},
		{"cut", "shardset 1\nrecords 1\n", SHARD_E_CORRUPT, "dataset.manifest: M2"},
	};
	struct shard_dataset *ds = NULL;
	struct path p;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = ""};

		STORY("%s", rows[i].story);
		new_folder(&folder, "t_dataset");
		if (rows[i].text)
			file_make(in_folder(&p, "dataset.manifest"), rows[i].text, strlen(rows[i].text));
		CHECK_EQ(shard_dataset_open(&ds, folder.text, NULL, &err), rows[i].want);
		if (!strstr(err.message, rows[i].says))
			CHECK_STR(err.message, rows[i].says);
		CHECK(!ds);
	}
	CHECK_EQ(shard_dataset_open(&ds, in_folder(&p, "nowhere"), NULL, NULL), SHARD_E_IO);
}

TEST(options_are_checked)
{
	struct shard_dataset_options o = {.size = sizeof(o), .check = 4};
	struct shard_dataset *ds = NULL;

	make_dataset(SHARD_RAW);
	CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, NULL), SHARD_E_ARGUMENT);
	o = (struct shard_dataset_options){.size = sizeof(o), .guard = 3};
	CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, NULL), SHARD_E_ARGUMENT);
	CHECK(!ds);
	o = (struct shard_dataset_options){.size = sizeof(o), .guard = 1, .check = SHARD_CHECK_ALWAYS};
	CHECK_OK(shard_dataset_open(&ds, folder.text, &o, &fixture_err));
	shard_dataset_close(ds);
}

/* Seal a text with the id of another one: the XXH3 is right, the SHA-256 is somebody else's. */
static void claim_id(const char *path, const char *id)
{
	char text[1 << 14], hex[33];
	uint8_t hash[16], high_first[16];
	int fd = open(path, O_RDWR);
	ssize_t bytes = pread(fd, text, sizeof(text), 0);

	CHECK(bytes > 102 && (size_t)bytes < sizeof(text));
	memcpy(text + bytes - 98, id, 64);
	shard_xxh128(text, (size_t)bytes - 33, hash);
	for (int i = 0; i < 16; i++)
		high_first[i] = hash[15 - i];
	for (int i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", high_first[i]);
	memcpy(text + bytes - 33, hex, 32);
	CHECK_EQ(pwrite(fd, text, (size_t)bytes, 0), bytes);
	close(fd);
}

TEST(an_id_that_is_expected_is_compared_with_the_text)
{
	struct shard_dataset_options o = {.size = sizeof(o)}, old;
	struct shard_dataset_info info;
	struct shard_dataset *ds = NULL;
	struct shard_error err;
	char id[80], other[65];
	struct path p;

	make_dataset(SHARD_RAW);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	shard_dataset_info(ds, &info);
	shard_dataset_close(ds);
	ds = NULL;
	strcpy(id, info.id);
	o.expect_id = id;
	CHECK_OK(shard_dataset_open(&ds, folder.text, &o, &fixture_err));
	memset(id, 'x', 64); /* the caller's memory may go */
	shard_dataset_info(ds, &info);
	shard_dataset_close(ds);
	ds = NULL;
	CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "64 hex digits"));
	for (int cut = 0; cut < 3; cut++) {
		strcpy(id, info.id);
		strcpy(id + (cut == 2 ? 64 : 63 * cut), cut == 2 ? "0" : "");
		STORY("id '%s'", id);
		CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, &err), SHARD_E_ARGUMENT);
	}
	strcpy(id, info.id);
	id[5] = id[5] == '0' ? '1' : '0';
	CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, id) && strstr(err.message, info.id));
	/* A program built when the struct ended before it: what stands there is not ours. */
	old = o;
	old.size = offsetof(struct shard_dataset_options, expect_id);
	old.expect_id = (const char *)1;
	CHECK_OK(shard_dataset_open(&ds, folder.text, &old, &fixture_err));
	shard_dataset_close(ds);
	ds = NULL;
	STORY("the end line says what is expected, the text is another");
	memset(other, 'a', 64);
	other[64] = 0;
	claim_id(tmp(&p, "t_dataset.%d/dataset.manifest", (int)getpid()), other);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err)); /* XXH3 alone does not see it */
	shard_dataset_close(ds);
	ds = NULL;
	o.expect_id = other;
	CHECK_EQ(shard_dataset_open(&ds, folder.text, &o, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "M15: "));
	CHECK(!ds);
}

/* Names are escaped once, not twice, wherever in a path they stand. */
TEST(odd_folder_names_are_shown_escaped)
{
	struct shard_error err = {.message = ""};
	const uint64_t one = 1;
	struct shard_dataset *ds;
	struct path p;

	schema = photo_schema(8, SHARD_RAW);
	new_folder(&folder, "t_data\nset");
	write_dataset(folder.text, &schema, &one, 1);
	unlink(tmp(&p, "t_data\nset.%d/0.shard", (int)getpid()));
	ds = open_dataset();
	CHECK_EQ(shard_dataset_key(ds, 0, key_text, &key_bytes, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "t_data\\x0aset."));
	CHECK(!strstr(err.message, "\\\\"));
	CHECK(strstr(err.message, "/0.shard: D1: "));
	shard_dataset_close(ds);
	remove_tree(folder.text);
}

/* ---- size ---- */

static char *text;
static size_t used, room;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list ap;

	if (room - used < 1000)
		text = realloc(text, room = 2 * room + 4096);
	va_start(ap, fmt);
	used += (size_t)vsnprintf(text + used, room - used, fmt, ap);
	va_end(ap);
}

static void say_hex(const uint8_t *p, int bytes, bool high_first)
{
	for (int i = 0; i < bytes; i++)
		say("%02x", p[high_first ? bytes - 1 - i : i]);
}

TEST(a_manifest_of_ten_thousand_shards)
{
	const uint64_t shards = 10000, each = 10007;
	struct shard_dataset *ds;
	struct shard_dataset_info info;
	struct shard_error err;
	uint8_t digest[32], hash[16];
	struct path p;

	schema = photo_schema(20, SHARD_RAW);
	new_folder(&folder, "t_dataset");
	say("shardset 1\nrecords %" PRIu64 "\nshards %" PRIu64 "\nplan -\norder source\n", shards * each, shards);
	say("group 0 stride 16 record 8 align 4 codec raw unit 256 chunk 0\n"
	    "field 0 label group 0 kind tensor dtype i64 layout none semantic label offset 0 bytes 8 shape - axes - "
	    "length -\n");
	for (uint64_t i = 0; i < shards; i++)
		say("shard %" PRIu64 " part-%" PRIu64 "/%05" PRIu64 ".shard bytes %" PRIu64 " records %" PRIu64
		    " root %032" PRIx64 " sha256 %064" PRIx64 "\n",
		    i, i % 7, i, (i + 2) * 4096, each, i, i * i);
	shard_sha256(text, used, digest);
	say("end ");
	say_hex(digest, 32, false);
	say(" ");
	shard_xxh128(text, used, hash);
	say_hex(hash, 16, true);
	say("\n");
	file_make(in_folder(&p, "dataset.manifest"), text, used);
	free(text);

	ds = open_dataset();
	shard_dataset_info(ds, &info);
	CHECK_EQ(info.record_count, shards * each);
	CHECK_EQ(info.shard_count, shards);
	CHECK_EQ(info.data_bytes, 4096 * (shards * (shards - 1) / 2 + 2 * shards));
	for (uint64_t i = 0; i < shards; i += 1 + i / 3) {
		struct shard_entry e;
		char name[64];

		STORY("shard %" PRIu64, i);
		CHECK_OK(shard_dataset_entry(ds, i, &e, &fixture_err));
		CHECK_EQ(e.first_record, i * each);
		CHECK_EQ(e.file_bytes, (i + 2) * 4096);
		CHECK_EQ(e.root[0] | e.root[1] << 8, i);
		/*
		 * the first and the last record of a shard: the file that is missing tells which it
		 * is
		 */
		for (uint64_t k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "/part-%" PRIu64 "/%05" PRIu64 ".shard: D1", i % 7, i);
			CHECK_EQ(shard_dataset_key(ds, i * each + k * (each - 1), key_text, &key_bytes, &err),
				 SHARD_E_MISMATCH);
			CHECK(strstr(err.message, name));
		}
	}
	shard_dataset_close(ds);
	remove_tree(folder.text);
}

/* ---- threads ---- */

struct shared {
	struct shard_dataset *ds;
	unsigned thread;
	int failed;
};

static void *read_some(void *arg)
{
	struct shared *s = arg;
	struct prng p = {s->thread};

	for (int turn = 0; turn < 200; turn++) {
		uint64_t idx[4];
		uint8_t image[4 * 1216], label[4 * 64], want[1216] = {0};
		void *dst[2] = {image, label};

		for (int i = 0; i < 4; i++)
			idx[i] = prng_below(&p, RECORDS);
		s->failed |= shard_dataset_read(s->ds, idx, 4, dst, NULL);
		photo_record(&schema, 0, idx[3], want);
		s->failed |= memcmp(image + 3 * 1216, want, 1216) != 0;
	}
	return NULL;
}

TEST(threads_open_shards_together)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shared s[4];
		pthread_t thread[4];
		struct shard_dataset *ds;

		make_dataset(codec);
		ds = open_dataset();
		for (unsigned i = 0; i < 4; i++) {
			s[i] = (struct shared){ds, i, 0};
			CHECK_EQ(pthread_create(&thread[i], NULL, read_some, &s[i]), 0);
		}
		for (unsigned i = 0; i < 4; i++) {
			CHECK_EQ(pthread_join(thread[i], NULL), 0);
			CHECK_EQ(s[i].failed, 0);
		}
		shard_dataset_close(ds);
	}
	remove_tree(folder.text);
}

TEST_MAIN()
