/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_folders.h - a folder whose folders are classes, to a plan
 *
 * The rules are those of torchvision's ImageFolder.  Each folder in SRC is a class, and all image
 * files below it are its samples.  Classes are in byte order.  Within a class, folders are ordered
 * by path, and files by name.  Links are followed.  A file is selected by its extension; whether it
 * is an image is known when it is decoded.
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
