/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_manifest.c - any bytes as a dataset.manifest: opened, and everything asked that a dataset
 * can be asked
 *
 * As in fuzz_shard.c each input is tried as it is and sealed again, with a right last line.  The
 * library reads the input in place of the file.  No shard is there, so reading records must fail,
 * cleanly.
 *
 * LDFLAGS: -Wl,--wrap=file_open,--wrap=file_close,--wrap=file_read_at
 */
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/verify/verify.h"
#include "shard_inspect.h"
#include "tests/fuzz/fuzz.h"

#define END_BYTES (4 + 64 + 1 + 32 + 1)

static const uint8_t *text;
static size_t text_bytes;

#define FAKE_FD 1000

int __real_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
int __wrap_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
void __real_file_close(int fd);
void __wrap_file_close(int fd);
int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

int __wrap_file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err)
{
	size_t length = strlen(path);

	if (length < 9 || strcmp(path + length - 9, ".manifest"))
		return __real_file_open(path, fd, bytes, inode, err);
	*fd = FAKE_FD;
	*bytes = text_bytes;
	return SHARD_OK;
}

void __wrap_file_close(int fd)
{
	if (fd != FAKE_FD)
		__real_file_close(fd);
}

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	if (fd != FAKE_FD)
		return __real_file_read_at(fd, out, bytes, offset, path, err);
	must(offset <= text_bytes && bytes <= text_bytes - offset, "reads past the end");
	memcpy(out, text + offset, bytes);
	return SHARD_OK;
}

/*
 * Put a right last line in the place of the one that is there, if any.  `data` has room for
 * END_BYTES more.
 */
static size_t seal(uint8_t *data, size_t size)
{
	uint8_t digest[SHA256_BYTES];
	struct hash128 hash;
	struct sha256 sha;
	size_t at = size;

	while (at && !(size - at >= 4 && !memcmp(data + at, "end ", 4) && data[at - 1] == '\n'))
		at--;
	at = at ? at : size;
	sha256_init(&sha);
	sha256_update(&sha, data, at);
	sha256_final(&sha, digest);
	memcpy(data + at, "end ", 4);
	hex_from_bytes((char *)data + at + 4, digest, sizeof(digest));
	data[at + 68] = ' ';
	hash = checksum128(data, at + 69);
	manifest_hash_text((char *)data + at + 69, hash.b);
	data[at + 101] = '\n';
	return at + END_BYTES;
}

/* ---- use it ---- */

static void use_shards(struct shard_dataset *ds, const struct shard_dataset_info *info)
{
	uint64_t records = 0, bytes = 0;
	struct shard_error err;
	struct shard_entry e;

	for (uint64_t i = 0; i < info->shard_count; i++) {
		must(!shard_dataset_entry(ds, i, &e, &err), "a shard of the manifest has no entry");
		must(e.first_record == records && e.file_name_bytes && memchr(e.file, ' ', e.file_name_bytes) == NULL,
		     "an entry is wrong");
		must(e.file[0] != '/' && e.file[0] != '.', "a shard lies outside the folder");
		records += e.record_count;
		bytes += e.file_bytes;
	}
	must(records == info->record_count && bytes == info->data_bytes, "shards do not add up to the dataset");
	must(shard_dataset_entry(ds, info->shard_count, &e, &err) == SHARD_E_ARGUMENT, "there is a shard too many");
}

static void use_tables(struct shard_dataset *ds, const struct shard_dataset_info *info)
{
	const struct shard_schema *s = shard_dataset_schema(ds);
	struct shard_error err;
	struct shard_moments m;
	uint64_t n;

	for (uint64_t i = 0; i < info->class_count; i++) {
		const char *name = shard_dataset_class_name(ds, i);

		must(name && strlen(name) >= 1 && strlen(name) <= 1024, "a class has no name");
	}
	must(!shard_dataset_class_name(ds, info->class_count), "there is a class too many");
	must(s->group_count >= 1 && s->group_count <= SHARD_GROUPS_MAX && s->field_count <= SHARD_FIELDS_MAX,
	     "the schema has no end");
	for (uint32_t f = 0; f < s->field_count; f++) {
		must(shard_schema_find(s, s->field[f].name) == &s->field[f], "a field is not found by its name");
		must(s->field[f].offset + s->field[f].bytes <= s->group[s->field[f].group].stride,
		     "a field lies outside its record");
	}
	for (uint32_t f = 0; f <= s->field_count; f++) {
		for (uint32_t c = 0; !shard_dataset_moments(ds, f, c, &m, &err);)
			c++;
		for (uint64_t c = 0; !shard_dataset_class_records(ds, f, c, &n, &err);)
			c++;
	}
}

static void use_order(struct shard_dataset *ds, const struct shard_dataset_info *info)
{
	struct shard_loader_options o = {
		.size = sizeof(o), .batch_records = 3, .rank = 1, .world = 2, .tail = SHARD_PAD};
	struct shard_loader *l;
	struct shard_error err;
	uint64_t idx[12];

	if (shard_loader_open(&l, ds, &o, &err))
		return;
	if (info->record_count >= 24 && info->record_count < UINT64_C(1) << 40) {
		must(!shard_loader_order(l, 5, 0, 12, NULL, idx, &err), "an epoch has no order");
		for (int i = 0; i < 12; i++)
			must(idx[i] < info->record_count, "a row is no record");
	}
	shard_loader_close(l);
}

static void use_manifest(void)
{
	struct shard_dataset *ds = NULL;
	struct shard_dataset_info info;
	struct shard_error err;
	struct shard_view view;
	int rc = shard_dataset_open(&ds, "/nowhere", NULL, &err);

	check_error(rc, &err);
	if (rc)
		return;
	shard_dataset_info(ds, &info);
	shard_dataset_manifest(ds, &view);
	must(view.bytes == text_bytes && !memcmp(view.data, text, text_bytes), "the text is not the file's");
	use_shards(ds, &info);
	use_tables(ds, &info);
	use_order(ds, &info);
	rc = dataset_verify_manifest(ds, &err);
	check_error(rc, &err);
	if (info.record_count) {
		uint64_t last = info.record_count - 1;
		char key[SHARD_KEY_BYTES_MAX];
		size_t key_bytes;

		rc = shard_dataset_key(ds, last, key, &key_bytes, &err);
		must(rc < 0, "a record of a missing shard was read");
		check_error(rc, &err);
	}
	shard_dataset_close(ds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *sealed = malloc(size + END_BYTES);

	must(sealed, "no memory");
	text = data;
	text_bytes = size;
	use_manifest();
	if (size)
		memcpy(sealed, data, size);
	text_bytes = seal(sealed, size);
	text = sealed;
	if (text_bytes != size || memcmp(sealed, data, size))
		use_manifest();
	free(sealed);
	return 0;
}

/* ---- libFuzzer ---- */

/* A random line: where it starts, and its length with the LF. */
static size_t pick_line(struct dice *d, const uint8_t *data, size_t size, size_t *bytes)
{
	size_t at = (size_t)(dice_draw(d) % size);
	const uint8_t *lf;

	while (at && data[at - 1] != '\n')
		at--;
	lf = memchr(data + at, '\n', size - at);
	*bytes = lf ? (size_t)(lf - data) + 1 - at : size - at;
	return at;
}

/* Put `count` bytes in the place of `old` ones at `at`; nothing if that does not fit. */
static size_t splice(uint8_t *data, size_t size, size_t size_max, size_t at, size_t old, const char *bytes,
		     size_t count)
{
	if (size - old + count > size_max)
		return size;
	memmove(data + at + count, data + at + old, size - at - old);
	memcpy(data + at, bytes, count);
	return size - old + count;
}

/* Another number in the place of one. */
static size_t change_number(struct dice *d, uint8_t *data, size_t size, size_t size_max)
{
	char number[32];
	size_t at = (size_t)(dice_draw(d) % size), old = 0;

	while (at < size && (data[at] < '0' || data[at] > '9'))
		at++;
	while (at + old < size && data[at + old] >= '0' && data[at + old] <= '9')
		old++;
	snprintf(number, sizeof(number), "%s%" PRIu64, dice_roll(d, 20) ? "" : "0", dice_number(d));
	return splice(data, size, size_max, at, old, number, strlen(number));
}

static size_t change_line(struct dice *d, uint8_t *data, size_t size, size_t size_max)
{
	static const char *const lines[] = {
		"class 0 a%20b\n",
		"class 1 %41\n",
		"stat classes 1 0 3\n",
		"stat moments 0 0 1 1 1\n",
		"plan -\n",
		"order source\n",
		"order shuffle 18446744073709551615\n",
		"records 0\n",
		"shards 0\n",
		"end \n",
		"\n",
		"shardset 1\n",
	};
	size_t bytes, at = pick_line(d, data, size, &bytes), to_bytes, to = pick_line(d, data, size, &to_bytes);
	char line[4200];

	if (bytes > sizeof(line))
		return size;
	memcpy(line, data + at, bytes);
	switch (dice_roll(d, 4)) {
	case 0:
		return splice(data, size, size_max, at, bytes, "", 0);
	case 1:
		return splice(data, size, size_max, to, 0, line, bytes);
	case 2:
		return splice(data, size, size_max, to, to_bytes, line, bytes);
	default: {
		const char *other = lines[dice_roll(d, sizeof(lines) / sizeof(lines[0]))];

		return splice(data, size, size_max, to, 0, other, strlen(other));
	}
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	struct dice d = dice(seed);

	for (unsigned n = 1 + dice_roll(&d, 3); n; n--) {
		unsigned kind = size ? dice_roll(&d, 5) : 0;

		if (!kind)
			size = LLVMFuzzerMutate(data, size, size_max);
		else if (kind < 3)
			size = change_number(&d, data, size, size_max);
		else
			size = change_line(&d, data, size, size_max);
	}
	if (dice_roll(&d, 10) && size + END_BYTES <= size_max)
		size = seal(data, size);
	return size;
}
