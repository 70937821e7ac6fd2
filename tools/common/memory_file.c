/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_file.c - see memory_file.h
 */
#include "tools/common/memory_file.h"

#include <string.h>

#include "tools/common/grow.h"

static ssize_t add(void *context, const char *from, size_t bytes)
{
	struct memory_file *m = context;

	if (!grow(&m->data, &m->capacity, m->bytes + bytes + 1, 1)) {
		m->failed = true;
		return 0; /* the stream has an error from now on */
	}
	memcpy(m->data + m->bytes, from, bytes);
	m->bytes += bytes;
	m->data[m->bytes] = '\0';
	return (ssize_t)bytes;
}

bool memory_file_open(struct memory_file *m)
{
	*m = (struct memory_file){.data = NULL};
	m->stream = fopencookie(m, "w", (cookie_io_functions_t){.write = add});
	return m->stream != NULL;
}

bool memory_file_close(struct memory_file *m)
{
	bool ok = m->stream && !ferror(m->stream);

	if (m->stream && fclose(m->stream) != 0)
		ok = false;
	m->stream = NULL;
	if (!m->bytes && !m->failed) /* nothing was written: the data is an empty text */
		add(m, "", 0);
	return ok && !m->failed;
}
