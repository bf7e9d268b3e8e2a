// SPDX-License-Identifier: GPL-2.0
/* Has a BPF program that was loaded without CAP_BPF a symbol and KSYMBOL records? */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_load.h"
#include "lib/ksym_check.h"
#include "lib/ksym_ring.h"
#include "lib/test_env.h"

#define UNPRIVILEGED	"/proc/sys/kernel/unprivileged_bpf_disabled"
#define NOBODY		1000
#define PROG_NAME	"ksym_nobody"

FIXTURE(unprivileged) {
	struct ksym_rings rings;
	long saved;
	int go[2], done[2];
	pid_t child;
	int prog;		/* in the child, or -errno */
};

/* Load a program as uid 1000, and keep it until the other end of @go is closed. */
static void load_as_nobody(int go, int done)
{
	int prog = -EPERM;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	    !setresuid(NOBODY, NOBODY, NOBODY))
		prog = load_filter(PROG_NAME);
	if (write(done, &prog, sizeof(prog)) != sizeof(prog))
		_exit(1);
	_exit(read(go, &c, 1) != 0);
}

FIXTURE_SETUP(unprivileged)
{
	const char *reason = skip_reason();

	memset(self, 0, sizeof(*self));
	self->saved = read_number(UNPRIVILEGED);
	if (reason)
		SKIP(return, "%s", reason);
	/* 1 cannot be changed until the next boot. */
	if (self->saved && write_number(UNPRIVILEGED, 0))
		SKIP(return, UNPRIVILEGED " is %ld", self->saved);
	ASSERT_EQ(0, ksym_rings__open_dummy(&self->rings));
	ASSERT_EQ(0, pipe(self->go));
	ASSERT_EQ(0, pipe(self->done));
	self->child = fork();
	ASSERT_LE(0, self->child);
	if (!self->child) {
		close(self->go[1]);
		load_as_nobody(self->go[0], self->done[1]);
	}
	close(self->done[1]);
	if (read(self->done[0], &self->prog, sizeof(int)) != sizeof(int))
		self->prog = -EPIPE;
}

FIXTURE_TEARDOWN(unprivileged)
{
	if (self->child > 0) {
		kill(self->child, SIGKILL);
		waitpid(self->child, NULL, 0);
	}
	if (self->saved > 0)
		write_number(UNPRIVILEGED, self->saved);
	ksym_rings__close(&self->rings);
}

/* The last REGISTER whose name contains PROG_NAME, or NULL */
static const struct ksym_rec *find_program(const struct ksym_rings *rings)
{
	size_t i = rings->nr_recs;

	while (i--)
		if (ksym_rec__is(&rings->recs[i], false) &&
		    strstr(rings->recs[i].name, PROG_NAME))
			return &rings->recs[i];
	return NULL;
}

TEST_F_TIMEOUT(unprivileged, has_a_symbol, TEST_S)
{
	const struct ksym_rec *rec;
	struct ksym_body body;

	ASSERT_LE(0, self->prog) TH_LOG("BPF_PROG_LOAD: %s", strerror(-self->prog));
	ASSERT_EQ(0, ksym_rings__drain(&self->rings));
	rec = find_program(&self->rings);
	ASSERT_NE(NULL, rec) TH_LOG("no REGISTER has the name of the program");
	TH_LOG("%s 0x%llx+%u", rec->name, rec->k.addr, rec->k.len);
	EXPECT_EQ(0, strncmp(rec->name, "bpf_prog_", strlen("bpf_prog_")));
	EXPECT_EQ(1, kallsyms_has(rec->name, rec->k.addr));
	body = rec->k;

	close_fd(&self->go[1]);
	rec = ksym_rings__wait_unregister(&self->rings, PROG_NAME);
	ASSERT_NE(NULL, rec);
	EXPECT_EQ(body.addr, rec->k.addr);
	EXPECT_EQ(body.len, rec->k.len);
	EXPECT_EQ(0, self->rings.lost);
}

TEST_HARNESS_MAIN
