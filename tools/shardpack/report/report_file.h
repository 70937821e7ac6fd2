/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.h - the report that --report asks for
 */
#ifndef SHARD_REPORT_REPORT_FILE_H
#define SHARD_REPORT_REPORT_FILE_H

struct report;

/*
 * Write it as JSON, or as a page if the name ends in .html; durably, in place of a file that is
 * there.  Says why it fails and returns the exit code.
 */
int report_file_write(const struct report *r, const char *path);

#endif
