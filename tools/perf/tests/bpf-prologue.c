// SPDX-License-Identifier: GPL-2.0
/*
 * Test the instructions that perf puts in front of a BPF program to fetch the arguments
 * of a probe point, one by one, for x86-64 and arm64, and what is refused with which
 * message. Who may load programs has the verifier check those of its own machine too.
 */
#include <dwarf-regs.h>
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_LIBBPF_SUPPORT
#include <bpf/bpf.h>
#endif
#include "tests.h"
#include "util/bpf-prologue.h"
#include "util/debug.h"
#include "util/probe-event.h"

#define MAX_EXPECTED	32
/* On x86-64 such an address fits in a sign-extended 32-bit constant, on arm64 not */
#define X86_SYM_ADDRESS		0xffffffff81234560ULL
#define ARM64_SYM_ADDRESS	0xffff800081234560ULL

/* Read n bytes at r3 to the slot of argument 0, 1 or 2 */
#define READ(helper, slot, n, failed)						\
	BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),					\
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, slot),				\
	BPF_MOV64_IMM(BPF_REG_2, n),						\
	BPF_EMIT_CALL(helper),							\
	BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, failed)

#define READ_KERNEL(slot, n, failed)	READ(BPF_FUNC_probe_read, slot, n, failed)
#define READ_USER(slot, n, failed)	READ(BPF_FUNC_probe_read_user, slot, n, failed)

#define BEGIN		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1)
#define END		BPF_MOV64_IMM(BPF_REG_2, 0), BPF_MOV64_REG(BPF_REG_1, BPF_REG_6)
#define END_1_FAILED								\
	BPF_MOV64_IMM(BPF_REG_2, 0), BPF_JMP_A(2),				\
	BPF_MOV64_IMM(BPF_REG_2, 1), BPF_MOV64_IMM(BPF_REG_3, 0),		\
	BPF_MOV64_REG(BPF_REG_1, BPF_REG_6)

#define ARG(v, t, ...)	{ .name = (char *)"arg", .value = (char *)(v), .type = (char *)(t), \
			  __VA_ARGS__ }

static struct probe_trace_arg_ref ref_8 = { .offset = 8 };
static struct probe_trace_arg_ref ref_minus_16 = { .offset = -16 };
static struct probe_trace_arg_ref ref_user_8 = { .offset = 8, .user_access = true };
static struct probe_trace_arg_ref ref_0 = { .offset = 0 };
static struct probe_trace_arg_ref ref_24_8 = { .offset = 24, .next = &ref_8 };

static const struct prologue_case {
	const char		*what;
	u16			e_machine;
	bool			user;
	int			nargs;
	struct probe_trace_arg	args[BPF_PROLOGUE_MAX_ARGS];
	int			cnt;
	struct bpf_insn		expected[MAX_EXPECTED];
} cases[] = {
	{
		"no arguments", EM_X86_64, .cnt = 3,
		.expected = { BEGIN, END },
	}, {
		"three registers", EM_X86_64, .nargs = 3,
		.args = { ARG("%di", NULL), ARG("%r15", "x64"), ARG("%sp", "u64") },
		.cnt = 6, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 0),
			BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 152),
			END,
		},
	}, {
		"three registers of arm64", EM_AARCH64, .nargs = 3,
		.args = { ARG("%x0", NULL), ARG("%lr", "x64"), ARG("%sp", "u64") },
		.cnt = 6, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 0),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 240),
			BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 248),
			END,
		},
	}, {
		"$arg2, $retval and $stack", EM_X86_64, .nargs = 3,
		.args = { ARG("$arg2", NULL), ARG("$retval", NULL), ARG("$stack", NULL) },
		.cnt = 6, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 104),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 80),
			BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 152),
			END,
		},
	}, {
		"$arg8 and $retval of arm64", EM_AARCH64, .nargs = 2,
		.args = { ARG("$arg8", NULL), ARG("$retval", NULL) },
		.cnt = 5, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 56),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 0),
			END,
		},
	}, {
		"parts of registers", EM_X86_64, .nargs = 3,
		.args = { ARG("%si", "u8"), ARG("%si", "s32"), ARG("%si", "b3@5/32") },
		.cnt = 12, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 104),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_3, 56),
			BPF_ALU64_IMM(BPF_RSH, BPF_REG_3, 56),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 104),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_4, 32),
			BPF_ALU64_IMM(BPF_ARSH, BPF_REG_4, 32),
			BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 104),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_5, 56),
			BPF_ALU64_IMM(BPF_RSH, BPF_REG_5, 61),
			END,
		},
	}, {
		"constants", EM_X86_64, .nargs = 3,
		.args = { ARG("\\-5", "s32"), ARG("\\0xdeade12d", NULL), ARG("\\7", "u8") },
		.cnt = 11, .expected = {
			BEGIN,
			BPF_MOV64_IMM(BPF_REG_3, -5),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_3, 32),
			BPF_ALU64_IMM(BPF_ARSH, BPF_REG_3, 32),
			BPF_LD_IMM64(BPF_REG_4, 0xdeade12d),
			BPF_MOV64_IMM(BPF_REG_5, 7),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_5, 56),
			BPF_ALU64_IMM(BPF_RSH, BPF_REG_5, 56),
			END,
		},
	}, {
		"one pointer", EM_X86_64, .nargs = 1,
		.args = { ARG("%bp", "s16", .ref = &ref_minus_16) },
		.cnt = 16, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 32),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -16),
			READ_KERNEL(-8, 2, 5),
			BPF_LDX_MEM(BPF_H, BPF_REG_3, BPF_REG_10, -8),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_3, 48),
			BPF_ALU64_IMM(BPF_ARSH, BPF_REG_3, 48),
			END_1_FAILED,
		},
	}, {
		"two pointers of arm64", EM_AARCH64, .nargs = 1,
		.args = { ARG("%x19", "u32", .ref = &ref_24_8) },
		.cnt = 21, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 152),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 24),
			READ_KERNEL(-8, 8, 10),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			READ_KERNEL(-8, 4, 3),
			BPF_LDX_MEM(BPF_W, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"a bit-field in memory", EM_X86_64, .nargs = 1,
		.args = { ARG("%di", "b5@3/8", .ref = &ref_8) },
		.cnt = 16, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			READ_KERNEL(-8, 1, 5),
			BPF_LDX_MEM(BPF_B, BPF_REG_3, BPF_REG_10, -8),
			BPF_ALU64_IMM(BPF_LSH, BPF_REG_3, 56),
			BPF_ALU64_IMM(BPF_RSH, BPF_REG_3, 59),
			END_1_FAILED,
		},
	}, {
		"user memory", EM_X86_64, .nargs = 1,
		.args = { ARG("%di", "u64", .ref = &ref_user_8) },
		.cnt = 14, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			READ_USER(-8, 8, 3),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"memory of a uprobe's task", EM_X86_64, .user = true, .nargs = 1,
		.args = { ARG("$stack2", NULL) },
		.cnt = 14, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 152),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 16),
			READ_USER(-8, 8, 3),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"the address of a string", EM_X86_64, .nargs = 1,
		.args = { ARG("%di", "string", .ref = &ref_8) },
		.cnt = 5, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			END,
		},
	}, {
		"the address of a string behind a pointer", EM_X86_64, .nargs = 1,
		.args = { ARG("%di", "string", .ref = &ref_24_8) },
		.cnt = 15, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 24),
			READ_KERNEL(-8, 8, 4),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			END_1_FAILED,
		},
	}, {
		"a symbol", EM_X86_64, .nargs = 1,
		.args = { ARG("@x86_sym", "u64", .ref = &ref_8) },
		.cnt = 14, .expected = {
			BEGIN,
			BPF_MOV64_IMM(BPF_REG_3, (s32)X86_SYM_ADDRESS),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			READ_KERNEL(-8, 8, 3),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"an offset behind a symbol of arm64", EM_AARCH64, .nargs = 1,
		.args = { ARG("@arm64_sym+8", "u64") },
		.cnt = 15, .expected = {
			BEGIN,
			BPF_LD_IMM64(BPF_REG_3, ARM64_SYM_ADDRESS),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8),
			READ_KERNEL(-8, 8, 3),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"brackets", EM_X86_64, .nargs = 1,
		.args = { ARG("-4(+u16(%cx))", "u8") },
		.cnt = 21, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 88),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 16),
			READ_USER(-8, 8, 10),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -4),
			READ_KERNEL(-8, 1, 3),
			BPF_LDX_MEM(BPF_B, BPF_REG_3, BPF_REG_10, -8),
			END_1_FAILED,
		},
	}, {
		"a register between memory and memory", EM_X86_64, .nargs = 3,
		.args = {
			ARG("%di", "u64", .ref = &ref_0),
			ARG("%si", NULL),
			ARG("%dx", "u64", .ref = &ref_0),
		},
		.cnt = 23, .expected = {
			BEGIN,
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 112),
			READ_KERNEL(-8, 8, 11),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 96),
			READ_KERNEL(-24, 8, 5),
			BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_10, -8),
			BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 104),
			BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_10, -24),
			BPF_MOV64_IMM(BPF_REG_2, 0),
			BPF_JMP_A(4),
			BPF_MOV64_IMM(BPF_REG_2, 1),
			BPF_MOV64_IMM(BPF_REG_3, 0),
			BPF_MOV64_IMM(BPF_REG_4, 0),
			BPF_MOV64_IMM(BPF_REG_5, 0),
			BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		},
	},
};

static const struct refused_case {
	u16			e_machine;
	struct probe_trace_arg	arg;
	int			err;
	const char		*message;	/* a part of it */
} refused[] = {
	{ EM_X86_64, ARG("%x0", NULL), -EINVAL, "do not see '%x0'" },
	{ EM_X86_64, ARG("$arg7", NULL), -EINVAL, "do not see '$arg7'" },
	{ EM_X86_64, ARG("$arg0", NULL), -EINVAL, "do not see '$arg0'" },
	{ EM_X86_64, ARG("$comm", "string"), -EOPNOTSUPP, "bpf_get_current_comm()" },
	{ EM_X86_64, ARG("$stackx", NULL), -EINVAL, "not an entry of the stack" },
	{ EM_X86_64, ARG("%di", "string"), -EINVAL, "+0(%di):string" },
	{ EM_X86_64, ARG("%di", "u12"), -EOPNOTSUPP, "type 'u12'" },
	{ EM_X86_64, ARG("%di", "b30@5/32"), -EOPNOTSUPP, "type 'b30@5/32'" },
	{ EM_X86_64, ARG("%di", "b0@5/32"), -EOPNOTSUPP, "type 'b0@5/32'" },
	{ EM_X86_64, ARG("%di", "x64[4]"), -EOPNOTSUPP, "type 'x64[4]'" },
	{ EM_X86_64, ARG("@nowhere", NULL), -ENOENT, "symbol 'nowhere'" },
	{ EM_X86_64, ARG("@0x12+", NULL), -EINVAL, "not an address" },
	{ EM_X86_64, ARG("\\", NULL), -EINVAL, "not a constant" },
	{ EM_X86_64, ARG("\\12x", NULL), -EINVAL, "not a constant" },
	{ EM_X86_64, ARG("+8(%di", NULL), -EINVAL, "brackets" },
	{ EM_X86_64, ARG("+8(%di))", NULL), -EINVAL, "brackets" },
	{ EM_X86_64, ARG("+(%di)", NULL), -EINVAL, "not an offset" },
	{ EM_X86_64, ARG("count", NULL), -EINVAL, "'count' is not known" },
	{ EM_X86_64, ARG(NULL, NULL), -EINVAL, "has no place" },
	{ EM_S390, ARG("%r2", NULL), -EOPNOTSUPP, "x86-64 and arm64 only" },
};

static u64 address_of(const char *name, void *ctx __maybe_unused)
{
	if (!strcmp(name, "x86_sym"))
		return X86_SYM_ADDRESS;
	return strcmp(name, "arm64_sym") ? 0 : ARM64_SYM_ADDRESS;
}

static int generate(struct bpf_prologue *prologue, u16 e_machine, bool user,
		    const struct probe_trace_arg *args, int nargs)
{
	struct bpf_prologue_target target = {
		.e_machine = e_machine,
		.user = user,
		.symbol = address_of,
	};

	return bpf_prologue__generate(prologue, &target, args, nargs);
}

static int compare(const struct prologue_case *c, const struct bpf_prologue *prologue)
{
	if (prologue->cnt != c->cnt) {
		pr_debug("%s: %d instructions, not %d\n", c->what, prologue->cnt, c->cnt);
		return TEST_FAIL;
	}
	for (int i = 0; i < c->cnt; i++) {
		const struct bpf_insn *insn = &prologue->insns[i];

		if (memcmp(insn, &c->expected[i], sizeof(*insn))) {
			pr_debug("%s: instruction %d is code %#x dst r%d src r%d off %d imm %d\n",
				 c->what, i, insn->code, insn->dst_reg, insn->src_reg,
				 insn->off, insn->imm);
			return TEST_FAIL;
		}
	}
	return TEST_OK;
}

static int test__bpf_prologue_insns(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	struct bpf_prologue prologue;
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct prologue_case *c = &cases[i];

		if (generate(&prologue, c->e_machine, c->user, c->args, c->nargs)) {
			pr_debug("%s: %s\n", c->what, prologue.error);
			ret = TEST_FAIL;
		} else if (compare(c, &prologue)) {
			ret = TEST_FAIL;
		}
	}
	return ret;
}

static int refuse_at_return(struct bpf_prologue *prologue)
{
	const struct bpf_prologue_target target = { .e_machine = EM_X86_64, .retprobe = true };
	const struct probe_trace_arg arg = ARG("+8($arg1)", NULL);

	if (bpf_prologue__generate(prologue, &target, &arg, 1) != -EOPNOTSUPP)
		return -EINVAL;
	return strstr(prologue->error, "when the function returns") ? 0 : -EINVAL;
}

static int test__bpf_prologue_refused(struct test_suite *test __maybe_unused,
				      int subtest __maybe_unused)
{
	const struct probe_trace_arg four[] = {
		ARG("%di", NULL), ARG("%di", NULL), ARG("%di", NULL), ARG("%di", NULL),
	};
	struct bpf_prologue prologue;
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		const struct refused_case *c = &refused[i];
		int err = generate(&prologue, c->e_machine, false, &c->arg, 1);

		if (err != c->err || !strstr(prologue.error, c->message)) {
			pr_debug("%s:%s: error %d, %s\n", c->arg.value, c->arg.type, err,
				 prologue.error);
			ret = TEST_FAIL;
		}
	}
	TEST_ASSERT_EQUAL("$arg1 at a return", refuse_at_return(&prologue), 0);
	TEST_ASSERT_EQUAL("four arguments",
			  generate(&prologue, EM_X86_64, false, four, 4), -E2BIG);
	TEST_ASSERT_VAL("message of four arguments", strstr(prologue.error, "up to three"));
	return ret;
}

#ifdef HAVE_LIBBPF_SUPPORT
/* With a program behind it that uses all that it was given */
static int load(const struct bpf_prologue *prologue, int nargs, char *log, size_t log_size)
{
	struct bpf_insn insns[BPF_PROLOGUE_MAX_INSNS + 8];
	int cnt = prologue->cnt;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = log_size,
		    .log_level = 1);

	memcpy(insns, prologue->insns, cnt * sizeof(*insns));
	insns[cnt++] = BPF_MOV64_REG(BPF_REG_0, BPF_REG_2);
	for (int i = 0; i < nargs; i++)
		insns[cnt++] = BPF_ALU64_REG(BPF_ADD, BPF_REG_0, BPF_REG_3 + i);
	insns[cnt++] = BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	insns[cnt++] = BPF_EXIT_INSN();
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "prologue", "GPL", insns, cnt, &opts);
}

static int test__bpf_prologue_verifier(struct test_suite *test __maybe_unused,
				       int subtest __maybe_unused)
{
	static char log[65536];
	struct bpf_prologue prologue;
	int ret = TEST_SKIP;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct prologue_case *c = &cases[i];
		int fd;

		if (c->e_machine != EM_HOST)
			continue;
		if (generate(&prologue, c->e_machine, c->user, c->args, c->nargs))
			return TEST_FAIL;
		log[0] = '\0';
		fd = load(&prologue, c->nargs, log, sizeof(log));
		if (fd == -EPERM)
			return TEST_SKIP;
		if (fd < 0) {
			pr_debug("%s: error %d\n%s\n", c->what, fd, log);
			return TEST_FAIL;
		}
		close(fd);
		ret = TEST_OK;
	}
	return ret;
}
#else
static int test__bpf_prologue_verifier(struct test_suite *test __maybe_unused,
				       int subtest __maybe_unused)
{
	return TEST_SKIP;
}
#endif /* HAVE_LIBBPF_SUPPORT */

static struct test_case bpf_prologue_tests[] = {
	TEST_CASE("Instructions for x86-64 and arm64", bpf_prologue_insns),
	TEST_CASE("Refused arguments", bpf_prologue_refused),
	TEST_CASE_REASON("Accepted by the verifier", bpf_prologue_verifier,
			 "needs to load BPF programs, on x86-64 or arm64"),
	{ .name = NULL, }
};

struct test_suite suite__bpf_prologue = {
	.desc = "BPF prologues of probe points",
	.test_cases = bpf_prologue_tests,
};
