/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removal.h - remove folders, and what is in them, while others may be at the same
 */
#ifndef SHARD_COMMON_REMOVAL_H
#define SHARD_COMMON_REMOVAL_H

#include <stdbool.h>

/* Remove what `is_ours` says from the folder `dir`, open as `fd`, and close it. */
int remove_names(const char *dir, int fd, bool (*is_ours)(const char *name));

/*
 * Remove the temporary files in a folder that no process has locked, as far as this machine knows.
 * No folder is no failure.
 */
int remove_temps(const char *path);

/*
 * Remove a folder that is empty, or will be in a moment: on network file systems a file that was
 * removed may stay until the system has closed it.  False, and errno, if that cannot be.
 */
bool remove_folder(const char *path);

/*
 * Is it a file that was removed while it was open, as NFS and FUSE rename it until it is closed?
 * That of a machine that died stays.
 */
bool is_removed_name(const char *name);

#endif
