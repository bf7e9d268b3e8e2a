/* SPDX-License-Identifier: GPL-2.0 */
/* Text of classic BPF: see made.h. */
#ifndef SELFTESTS_PERF_EVENTS_MAKE_CBPF_H
#define SELFTESTS_PERF_EVENTS_MAKE_CBPF_H

#include "made.h"

#define NR_FILTERS	4	/* that make_...() attaches */

/* Return: 0 or -errno. */
int attach_filter(int sock);

/* unmake_fds() closes the sockets. */
int make_socket_filters(struct made *m);

int make_seccomp_filters(struct made *m);
void unmake_seccomp_filters(struct made *m);

#endif
