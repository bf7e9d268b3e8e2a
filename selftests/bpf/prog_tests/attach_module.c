// SPDX-License-Identifier: GPL-2.0
/* Names of attach targets are used in full, with and without a module. */
#include <test_progs.h>
#include "attach_module.skel.h"
#include "testing_helpers.h"

#define TESTMOD_FUNC	"bpf_testmod:bpf_testmod_test_read"

/* Skips the subtest without the module. */
static bool has_testmod(void)
{
	if (!env.has_testmod)
		test__skip();
	return env.has_testmod;
}

static void test_target(const char *target, int want)
{
	struct attach_module *skel = attach_module__open();
	int err;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	err = bpf_program__set_attach_target(skel->progs.handle_fentry, 0, target);
	ASSERT_EQ(err, want, target);
	attach_module__destroy(skel);
}

static void test_fentry_vmlinux(void)
{
	test_target("vfs_read", 0);
	test_target("vmlinux:vfs_read", 0);
	test_target("vmlinux_:vfs_read", -ESRCH);
	test_target("v:vfs_read", -ESRCH);
	test_target(":vfs_read", -ESRCH);
}

static void test_fentry_module(void)
{
	if (!has_testmod())
		return;
	test_target(TESTMOD_FUNC, 0);
	test_target("bpf_testmod_:bpf_testmod_test_read", -ESRCH);
	test_target("bpf_test:bpf_testmod_test_read", -ESRCH);
	test_target(":bpf_testmod_test_read", -ESRCH);
}

static void test_kprobe_module(void)
{
	struct attach_module *skel;

	if (!has_testmod())
		return;
	skel = attach_module__open();
	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.handle_kprobe, true);
	bpf_program__set_autoload(skel->progs.handle_kprobe_offset, true);
	bpf_program__set_autoload(skel->progs.handle_kretprobe, true);
	if (!ASSERT_OK(attach_module__load(skel), "load") ||
	    !ASSERT_OK(attach_module__attach(skel), "attach"))
		goto cleanup;

	ASSERT_OK(trigger_module_test_read(1), "trigger_read");
	ASSERT_EQ(skel->bss->kprobe_runs, 1, "kprobe_runs");
	ASSERT_EQ(skel->bss->kprobe_offset_runs, 1, "kprobe_offset_runs");
	ASSERT_EQ(skel->bss->kretprobe_runs, 1, "kretprobe_runs");
cleanup:
	attach_module__destroy(skel);
}

static void attach_manually(struct attach_module *skel, enum probe_attach_mode mode,
			    bool retprobe)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .attach_mode = mode, .retprobe = retprobe);
	struct bpf_link *link;

	link = bpf_program__attach_kprobe_opts(skel->progs.handle_manual, TESTMOD_FUNC, &opts);
	if (!ASSERT_OK_PTR(link, "attach_kprobe_opts"))
		return;
	skel->bss->manual_runs = 0;
	ASSERT_OK(trigger_module_test_read(1), "trigger_read");
	ASSERT_EQ(skel->bss->manual_runs, 1, "manual_runs");
	bpf_link__destroy(link);
}

static void test_kprobe_module_manual(void)
{
	static const enum probe_attach_mode modes[] = {
		PROBE_ATTACH_MODE_LEGACY, PROBE_ATTACH_MODE_PERF, PROBE_ATTACH_MODE_LINK,
	};
	struct attach_module *skel;
	int i;

	if (!has_testmod())
		return;
	skel = attach_module__open();
	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.handle_manual, true);
	if (ASSERT_OK(attach_module__load(skel), "load")) {
		for (i = 0; i < ARRAY_SIZE(modes); i++) {
			attach_manually(skel, modes[i], false);
			attach_manually(skel, modes[i], true);
		}
	}
	attach_module__destroy(skel);
}

static bool is_invalid(const struct bpf_program *prog)
{
	return !strncmp(bpf_program__name(prog), "invalid_", strlen("invalid_"));
}

static void attach_fails(struct bpf_program *prog, int want)
{
	struct bpf_link *link = bpf_program__attach(prog);

	ASSERT_EQ(libbpf_get_error(link), want, bpf_program__section_name(prog));
	if (!libbpf_get_error(link))
		bpf_link__destroy(link);
}

static void test_invalid(void)
{
	struct attach_module *skel = attach_module__open();
	struct bpf_program *prog;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_object__for_each_program(prog, skel->obj) {
		if (is_invalid(prog))
			bpf_program__set_autoload(prog, true);
	}
	bpf_program__set_autoload(skel->progs.no_module, true);
	if (!ASSERT_OK(attach_module__load(skel), "load"))
		goto cleanup;

	bpf_object__for_each_program(prog, skel->obj) {
		if (is_invalid(prog))
			attach_fails(prog, -EINVAL);
	}
	attach_fails(skel->progs.no_module, -ENOENT);
cleanup:
	attach_module__destroy(skel);
}

void serial_test_attach_module(void)
{
	if (test__start_subtest("fentry_vmlinux"))
		test_fentry_vmlinux();
	if (test__start_subtest("fentry_module"))
		test_fentry_module();
	if (test__start_subtest("kprobe_module"))
		test_kprobe_module();
	if (test__start_subtest("kprobe_module_manual"))
		test_kprobe_module_manual();
	if (test__start_subtest("invalid"))
		test_invalid();
}
