/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - runs a fuzz target over files, with any compiler and without libFuzzer
 *
 * Linked with one fuzz_NAME.c.  Without arguments it takes tests/fuzz/corpus/fuzz_NAME,
 * format/golden and format/bad, so that every input that ever broke the target, and every file the
 * format promises to judge, is tried in each `make check`.  With arguments it takes those files and
 * folders.  A folder that is not there is passed over; having nothing at all to replay is a
 * failure.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long replayed_count;

static int fail(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", path, what, strerror(errno));
	return 1;
}

/*
 * The buffer is exactly as long as the file, so that a sanitizer sees the first byte read past its
 * end.
 */
static int replay_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");
	int rc = 0;

	if (!data || !f)
		rc = fail(path, "cannot open");
	else if (fread(data, 1, size, f) != size)
		rc = fail(path, "cannot read");
	if (f)
		fclose(f);
	if (!rc) {
		printf("%s\n", path); /* before the run: after a crash the last line names the input */
		LLVMFuzzerTestOneInput(data, size);
		replayed_count++;
	}
	free(data);
	return rc;
}

static int replay(const char *path);

static int replay_folder(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort), rc = 0;

	if (n < 0)
		return fail(path, "cannot list");
	for (int i = 0; i < n; i++) {
		char child[PATH_MAX];

		if (entries[i]->d_name[0] != '.') {
			snprintf(child, sizeof(child), "%s/%s", path, entries[i]->d_name);
			rc |= replay(child);
		}
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int replay(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return fail(path, "cannot find");
	return S_ISDIR(st.st_mode) ? replay_folder(path) : replay_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	char corpus[PATH_MAX];
	char *usual[] = {corpus, (char[]){"format/golden"}, (char[]){"format/bad"}};
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(corpus, sizeof(corpus), "tests/fuzz/corpus/%s", slash ? slash + 1 : argv[0]);
	for (int i = 1; i < argc; i++)
		rc |= replay(argv[i]);
	for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(usual[0]); i++) {
		struct stat st;

		if (!stat(usual[i], &st))
			rc |= replay(usual[i]);
	}
	printf("%lu inputs replayed\n", replayed_count);
	return rc || !replayed_count;
}
