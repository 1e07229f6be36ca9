/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups that this process is in, from its own one upwards: all of them limit it. */
#ifndef BASE_GROUPS_H
#define BASE_GROUPS_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct groups {
    char folder[PATH_MAX]; /* of the group that is looked at, below `root`: "sys/fs/cgroup/a/b" */
    size_t mount;          /* characters of it that are the hierarchy's own folder */
};
/* The process's own group of version 2 (controller NULL) or in the hierarchy of a controller of
   version 1 ("cpu", "memory"), by root/proc/self/cgroup; the topmost one where that says nothing.
   root: "/", or a made-up tree. */
void groups_own(struct groups *, const char *root, const char *controller);
/* The one above. False: there is none, and nothing changes.
   Inside a container the path may be the host's; the topmost group then holds the limits. */
bool groups_up(struct groups *);

#endif
