// SPDX-License-Identifier: GPL-2.0
/* The same filter is attached to sockets, and as seccomp filter to a child process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "made.h"

#define NR_FILTERS	4	/* of each kind */

static struct sock_filter insns[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x7fffffff, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_fprog filter = {
	.len = sizeof(insns) / sizeof(*insns),
	.filter = insns,
};

int attach_filter(int sock)
{
	return setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ?
	       -errno : 0;
}

int make_socket_filters(struct made *m)
{
	int i, err = 0;

	m->want = NR_FILTERS;
	for (i = 0; i < m->want && !err; i++) {
		err = made__fd(m, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		if (!err)
			err = attach_filter(m->fds[i]);
	}
	return err;
}

static void seccomp_child(int ready)
{
	int i, err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = errno;
	for (i = 0; i < NR_FILTERS && !err; i++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			err = errno;
	if (write(ready, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	for (;;)
		pause();
}

int make_seccomp_filters(struct made *m)
{
	int ready[2], err = EIO;

	m->want = NR_FILTERS;
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	m->child = fork();
	if (!m->child)
		seccomp_child(ready[1]);
	close(ready[1]);
	if (m->child < 0 || read(ready[0], &err, sizeof(err)) != sizeof(err))
		err = EIO;
	close(ready[0]);
	return err == EINVAL ?
	       made__unsupported(m, "no seccomp filters: needs CONFIG_SECCOMP_FILTER") : -err;
}

void unmake_seccomp_filters(struct made *m)
{
	if (m->child <= 0)
		return;
	kill(m->child, SIGKILL);
	waitpid(m->child, NULL, 0);
	m->child = -1;
}
