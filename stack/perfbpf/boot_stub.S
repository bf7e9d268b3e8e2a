/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel of one page: it enters 64-bit mode, counts timer interrupts, executes
 * 100 million instructions, writes to the serial port and powers the machine off.
 * accel.py boots it in place of Linux to find out, before anything is built,
 * whether QEMU runs a guest and whether KVM works. KVM can fail in the firmware, at
 * a mode switch, or when the guest waits for an interrupt. Where the CPU does not
 * virtualize, KVM may also emulate each instruction: a host was seen to execute one
 * million a second so, and the kernel did not get to its first line in a minute. The
 * instructions take TCG under a second, a CPU a few hundredths.
 *
 *   QEMU's multiboot loader -> _start (32-bit, paging off)
 *     -> identity map of the first GiB, IDT, 64-bit mode -> long_mode
 *     -> PIC, PIT at 1000 Hz -> hlt until TICKS interrupts have come
 *     -> LOOPS of five instructions -> ACPI power-off of the q35 machine
 */

#define MAGIC		0x1badb002	/* a multiboot header */
#define FLAGS		0
#define TICKS		10
#define LOOPS		20000000

#define CODE64		0x08		/* selector of the one segment in gdt */
#define TIMER_VECTOR	0x20
#define COM1		0x3f8
#define PM1A_CNT	0x604		/* of q35, as SeaBIOS sets it up */
#define SLP_EN_S5	0x2000

	.text
	.globl	_start
	.balign	4
	.long	MAGIC, FLAGS, -(MAGIC + FLAGS)

	.code32
_start:
	cli
	movl	$stack_top, %esp

	/* PML4 -> PDPT -> 512 pages of 2 MiB; all three tables start zeroed. */
	movl	$(pdpt + 3), pml4
	movl	$(pd + 3), pdpt
	movl	$pd, %edi
	movl	$0x83, %eax		/* present, writable, large */
1:	movl	%eax, (%edi)
	addl	$0x200000, %eax
	addl	$8, %edi
	cmpl	$(pd + 4096), %edi
	jne	1b

	/* A gate of 16 bytes; the upper half of the handler's address is 0. */
	movl	$timer, %eax
	movl	$(idt + TIMER_VECTOR * 16), %edi
	movw	%ax, (%edi)
	movw	$CODE64, 2(%edi)
	movw	$0x8e00, 4(%edi)	/* present, interrupt gate */
	shrl	$16, %eax
	movw	%ax, 6(%edi)
	lidt	idt_pointer

	movl	%cr4, %eax
	orl	$0x20, %eax		/* PAE */
	movl	%eax, %cr4
	movl	$pml4, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx	/* EFER */
	rdmsr
	orl	$0x100, %eax		/* LME */
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000000, %eax	/* PG */
	movl	%eax, %cr0
	lgdt	gdt_pointer
	ljmp	$CODE64, $long_mode

	.code64
long_mode:
	movl	%esp, %esp		/* its upper half is undefined */
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss

	/* The PIC: vectors from TIMER_VECTOR on, only the timer let through. */
	movb	$0x11, %al
	outb	%al, $0x20
	movb	$TIMER_VECTOR, %al
	outb	%al, $0x21
	movb	$4, %al
	outb	%al, $0x21
	movb	$1, %al
	outb	%al, $0x21
	movb	$0xfe, %al
	outb	%al, $0x21

	/* The PIT: channel 0, a rate generator, 1193182 Hz / 1193. */
	movb	$0x34, %al
	outb	%al, $0x43
	movb	$(1193 & 0xff), %al
	outb	%al, $0x40
	movb	$(1193 >> 8), %al
	outb	%al, $0x40

	/* sti takes effect after the next instruction: no tick comes before hlt. */
	xorl	%ebx, %ebx		/* counts the ticks */
2:	cli
	cmpl	$TICKS, %ebx
	jae	3f
	sti
	hlt
	jmp	2b

3:	movl	$begins, %esi
	call	print
	movl	$LOOPS, %ecx
	movl	$word, %edi
4:	movl	(%rdi), %eax
	addl	$3, %eax
	movl	%eax, (%rdi)
	decl	%ecx
	jnz	4b
	movl	$done, %esi
	call	print

	movw	$PM1A_CNT, %dx
	movw	$SLP_EN_S5, %ax
	outw	%ax, %dx
5:	hlt
	jmp	5b

/* %esi: a string */
print:
	lodsb
	testb	%al, %al
	jz	6f
	movw	$COM1, %dx
	outb	%al, %dx
	jmp	print
6:	ret

timer:
	pushq	%rax
	incl	%ebx
	movb	$0x20, %al		/* end of interrupt */
	outb	%al, $0x20
	popq	%rax
	iretq

begins:	.asciz	"boot stub: 64-bit mode and interrupts work, executing instructions\n"
done:	.asciz	"boot stub: done\n"

	.balign	8
gdt:	.quad	0
	.quad	0x00209a0000000000	/* CODE64: 64-bit, executable, present */
gdt_pointer:
	.word	. - gdt - 1
	.long	gdt
	.balign	8
idt_pointer:
	.word	(TIMER_VECTOR + 1) * 16 - 1
	.long	idt

	.bss
	.balign	4096
pml4:	.skip	4096
pdpt:	.skip	4096
pd:	.skip	4096
idt:	.skip	(TIMER_VECTOR + 1) * 16
word:	.skip	4
	.balign	16
	.skip	4096
stack_top:
