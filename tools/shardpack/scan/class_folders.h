/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_folders.h - a folder whose folders are classes, to a plan
 *
 * As torchvision's ImageFolder sees it: each folder in SRC is a class, all image files below
 * it are its samples; classes in byte order, folders of a class by path, files by name.
 * Links are followed.  An extension selects a file; what it holds is for the decoder.
 */
#ifndef SHARD_SCAN_CLASS_FOLDERS_H
#define SHARD_SCAN_CLASS_FOLDERS_H

struct request;

/*
 * List the root, with classes as --classes says.  The plan is begun and has all its inputs, but is
 * not finished.  Returns the exit code; on failure the plan is to be freed all the same.
 */
int class_folders_scan(const struct request *r);

#endif
