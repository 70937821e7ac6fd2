/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - all looks in their order, and what they share: findings, and small files of the kernel
 */
#include "tools/shardcat/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 8192

/* ---- findings ---- */

void finding_set(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, FINDING_TEXT_BYTES, fmt, args);
	va_end(args);
}

void finding_add(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, FINDING_TEXT_BYTES - used, fmt, args);
	va_end(args);
}

void finding_number(struct finding *f, const char *name, uint64_t value)
{
	if (value != UINT64_MAX && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct fact){name, NULL, value};
}

void finding_text(struct finding *f, const char *name, const char *text)
{
	if (text[0] && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct fact){name, text, 0};
}

void finding_quote(struct finding *f, const char *message)
{
	const char *end = strstr(message, "; ");

	finding_set(f->found, "%.*s", end ? (int)(end - message) : (int)strlen(message), message);
	if (end)
		finding_set(f->advice, "%.*s", (int)(strcspn(end + 2, ";")), end + 2);
}

const char *size_text(char out[SIZE_CHARS], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t i = 0;

	while (value >= 1023.95 && i < 5) {
		value /= 1024;
		i++;
	}
	if (bytes < 1024)
		snprintf(out, SIZE_CHARS, "%" PRIu64 " B", bytes);
	else
		snprintf(out, SIZE_CHARS, "%.1f %s", value, units[i]);
	return out;
}

/* ---- small files of the kernel ---- */

bool kernel_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, 0);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

uint64_t number_behind(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned long long value;

	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}

uint64_t kernel_number(const char *path)
{
	char text[FILE_BYTES];

	return kernel_text(path, text, sizeof(text)) ? number_behind(text, "") : UINT64_MAX;
}

/* UINT64_MAX: the kernel was built without NUMA, or hides it. */
static uint64_t node_count(void)
{
	DIR *dir = opendir("/sys/devices/system/node");
	const struct dirent *e;
	uint64_t count = 0;

	if (!dir)
		return UINT64_MAX;
	while ((e = readdir(dir)))
		count += !strncmp(e->d_name, "node", 4) && isdigit((uint8_t)e->d_name[4]);
	closedir(dir);
	return count;
}

/* ---- all looks ---- */

int doctor_look(const struct doctor *d, struct shard_error *err)
{
	uint64_t nodes = node_count();
	int rc = SHARD_OK;

	doctor_machine(d, nodes);
	if (d->path)
		rc = doctor_disk(d, err);
	if (!rc)
		doctor_gpu(d, nodes);
	return rc;
}
