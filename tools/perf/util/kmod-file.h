/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_KMOD_FILE_H
#define __PERF_KMOD_FILE_H

struct dso;
struct machine;

char *dso__kmod_file(struct dso *dso, struct machine *machine);
void dso__find_kmod_file(struct dso *dso, struct machine *machine);

#endif /* __PERF_KMOD_FILE_H */
