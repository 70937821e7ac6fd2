/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - what the kernel says in small files, such as those of /proc
 *
 * The tools link this file, too.
 */
#include "libshard/io/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool proc_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = 1;

	for (; fd >= 0 && n > 0 && have<room - 1; have += n> 0 ? (size_t)n : 0)
		n = pread(fd, text + have, room - 1 - have, (off_t)have);
	if (fd >= 0)
		close(fd);
	text[have] = 0;
	return have > 0;
}

uint64_t proc_number(const char *path, const char *word)
{
	char text[PROC_BYTES];
	const char *at;
	unsigned long long value;

	if (!proc_read(path, text, sizeof(text)))
		return UINT64_MAX;
	at = strstr(text, word);
	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}
