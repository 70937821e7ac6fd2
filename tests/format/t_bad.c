/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_bad.c - every file of format/bad breaks exactly the rule in its name, and format/golden none
 *
 * Each file is verified twice.  As it is, the first error must carry the rule's number.  Then with
 * that one check taken out of the library, by the linker, the file must be accepted: so the number
 * was not given by another check, and the check is the only thing that stands between the file and
 * the user.
 *
 * LDFLAGS: -Wl,--wrap=invariant_broken -Wl,--wrap=LZ4_decompress_safe
 * TIMEOUT: 300
 */
#include <dirent.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/verify/verify.h"
#include "shard.h"
#include "shard_inspect.h"
#include "tests/test.h"

static char skipped[8]; /* the check that is taken out; empty for none */

int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...);

int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
{
	char text[900];
	va_list args;

	if (!strcmp(number, skipped))
		return SHARD_OK;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(err, status, "%s: %s", number, text);
}

int __real_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes);
int __wrap_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes);

/* Bytes of a length: 15 in the token means that more follow. */
static int more(const uint8_t *s, int bytes, int *at, int length)
{
	if (length < 15)
		return length;
	while (*at < bytes) {
		length += s[*at];
		if (s[(*at)++] != 255)
			break;
	}
	return length;
}

/*
 * Without I47, what a block decodes to is what there is of it, then zeros: the leaf hashes of those
 * files are over that. liblz4 leaves other bytes behind when it gives up, so a decoder that goes on
 * stands in.
 */
int __wrap_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes)
{
	const uint8_t *s = (const uint8_t *)src;
	int at = 0, out = 0;

	if (strcmp(skipped, "I47"))
		return __real_LZ4_decompress_safe(src, dst, src_bytes, dst_bytes);
	memset(dst, 0, (size_t)dst_bytes);
	while (at < src_bytes) {
		int token = s[at++], length = more(s, src_bytes, &at, token >> 4), offset;

		if (length > src_bytes - at || length > dst_bytes - out)
			break; /* a run or match that does not fit is not begun */
		for (; length; length--)
			dst[out++] = (char)s[at++];
		if (src_bytes - at < 2)
			break;
		offset = s[at] | s[at + 1] << 8;
		at += 2;
		length = more(s, src_bytes, &at, token & 15) + 4;
		if (!offset || offset > out || length > dst_bytes - 5 - out)
			break;
		for (; length; length--, out++)
			dst[out] = dst[out - offset];
	}
	return dst_bytes;
}

/* "I07_minor.shard" -> "I7" */
static void number_of(const char *name, char out[8])
{
	snprintf(out, 8, "%c%d", name[0], atoi(name + 1));
}

static int verify_dataset(const char *dir, struct shard_error *err)
{
	struct shard_verify_options o = {.size = sizeof(o), .sha256 = 1, .thread_count = 1};
	struct shard_dataset *ds;
	int rc = shard_dataset_open(&ds, dir, NULL, err);

	if (rc)
		return rc;
	rc = shard_dataset_verify(ds, &o, NULL, err);
	shard_dataset_close(ds);
	return rc;
}

static int verify_shard(const char *path, struct shard_error *err)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_reader *r;
	int rc = shard_reader_open(&r, path, NULL, err);

	if (rc)
		return rc;
	rc = shard_reader_verify(r, &o, NULL, err);
	shard_reader_close(r);
	return rc;
}

/* A manifest without its shards: only the rules of its text. */
static int verify_manifest(const char *path, struct shard_error *err)
{
	const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	char dir[256], copy[300], target[4096];
	struct shard_dataset *ds;
	int rc;

	snprintf(dir, sizeof(dir), "%s/t_bad.%d", tmp, (int)getpid());
	snprintf(copy, sizeof(copy), "%s/dataset.manifest", dir);
	mkdir(dir, 0755);
	CHECK(realpath(path, target));
	CHECK_EQ(symlink(target, copy), 0);
	rc = shard_dataset_open(&ds, dir, NULL, err);
	if (!rc) {
		rc = dataset_verify_manifest(ds, err);
		shard_dataset_close(ds);
	}
	unlink(copy);
	rmdir(dir);
	return rc;
}

static int verify(const char *path, struct shard_error *err)
{
	struct stat st;
	const char *end = strrchr(path, '.');

	CHECK_EQ(stat(path, &st), 0);
	if (S_ISDIR(st.st_mode))
		return verify_dataset(path, err);
	return end && !strcmp(end, ".manifest") ? verify_manifest(path, err) : verify_shard(path, err);
}

static int wanted_status(const char *name, const char *number)
{
	static const char *const unsupported[] = {"I10", "I11", "I12", "I21", "I34", "M4"};

	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
		if (!strcmp(number, unsupported[i]))
			return SHARD_E_UNSUPPORTED;
	if (!strcmp(name, "M09_codec.manifest")) /* the schema rule that it breaks is I21 */
		return SHARD_E_UNSUPPORTED;
	return number[0] == 'D' ? SHARD_E_MISMATCH : SHARD_E_CORRUPT;
}

static int count_entries(const char *dir, char name[512][256])
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), kept = 0;

	CHECK(n > 0 && n < 512);
	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.')
			snprintf(name[kept++], 256, "%s", list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return kept;
}

static char names[512][256];

TEST(bad_files_break_their_rule_only)
{
	int n = count_entries("format/bad", names), failed = 0, seen_i = 0, seen_m = 0, seen_d = 0, last = 0;

	for (int i = 0; i < n; i++) {
		struct shard_error err;
		char path[300], number[8], *at;
		int rc;

		snprintf(path, sizeof(path), "format/bad/%.255s", names[i]);
		number_of(names[i], number);
		skipped[0] = 0;
		rc = verify(path, &err);
		at = rc ? strstr(err.message, ": ") : NULL;
		while (at && strncmp(at + 2, number, strlen(number)))
			at = strstr(at + 2, ": ");
		if (!rc || !at || at[2 + strlen(number)] != ':') {
			printf("%s: wanted %s, got %s\n", path, number, rc ? err.message : "accepted");
			failed++;
		} else if (rc != wanted_status(names[i], number) && strcmp(number, "I7")) {
			printf("%s: wanted status %d, got %d\n", path, wanted_status(names[i], number), rc);
			failed++;
		}
		snprintf(skipped, sizeof(skipped), "%s", number);
		/* a shard that is not there, a manifest without end: nothing to go on with */
		if (strcmp(number, "D1") && strcmp(number, "M2")) {
			rc = verify(path, &err);
			if (rc) {
				printf("%s: without %s wanted accepted, got %s\n", path, number, err.message);
				failed++;
			}
		}
		skipped[0] = 0;
		if (i == 0 || number[0] != names[i - 1][0] || atoi(number + 1) != last) {
			seen_i += number[0] == 'I';
			seen_m += number[0] == 'M';
			seen_d += number[0] == 'D';
		}
		last = atoi(number + 1);
	}
	CHECK_EQ(failed, 0);
	CHECK_EQ(seen_i, 59);
	CHECK_EQ(seen_m, 17);
	CHECK_EQ(seen_d, 7);
	printf("%d bad files, each refused by its rule and accepted without it\n", n);
}

TEST(golden_files_are_accepted)
{
	int n = count_entries("format/golden", names), checked = 0;

	for (int i = 0; i < n; i++) {
		struct shard_error err;
		char path[300];
		const char *end = strrchr(names[i], '.');

		if (end && !strcmp(end, ".json"))
			continue;
		snprintf(path, sizeof(path), "format/golden/%.255s", names[i]);
		STORY("%.200s", path);
		if (verify(path, &err)) {
			printf("%s\n", err.message);
			CHECK(!"accepted");
		}
		checked++;
	}
	CHECK(checked >= 10);
	printf("%d golden files accepted\n", checked);
}

TEST_MAIN()
