// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// dlsym as a tail jump. A wrapper in C would become "the caller" of the real dlsym, and RTLD_NEXT in
// a library behind us would find that library itself. SluiceDecideDlsym returns two pointers: the
// answer, and the real dlsym for when there is none.

#if defined(__x86_64__)
        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    SluiceDecideDlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jne     1f
        testq   %rdx, %rdx
        je      1f
        jmp     *%rdx
1:      ret
        .cfi_endproc
        .size   dlsym, .-dlsym

// dlmopen in the same way: which folders are searched depends on the caller.
        .globl  dlmopen
        .type   dlmopen, @function
        .p2align 4
dlmopen:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        call    SluiceSeeDlmopen
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        je      1f
        jmp     *%rax
1:      ret
        .cfi_endproc
        .size   dlmopen, .-dlmopen

#elif defined(__aarch64__)
        .text
        .globl  dlsym
        .type   dlsym, %function
        .p2align 4
dlsym:
        .cfi_startproc
        hint    #34                     // bti c
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        bl      SluiceDecideDlsym
        mov     x16, x1
        mov     x2, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_adjust_cfa_offset -32
        cbnz    x2, 1f
        cbz     x16, 1f
        br      x16
1:      mov     x0, x2
        ret
        .cfi_endproc
        .size   dlsym, .-dlsym

// dlmopen in the same way: which folders are searched depends on the caller.
        .globl  dlmopen
        .type   dlmopen, %function
        .p2align 4
dlmopen:
        .cfi_startproc
        hint    #34                     // bti c
        stp     x29, x30, [sp, #-48]!
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        bl      SluiceSeeDlmopen
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_adjust_cfa_offset -48
        cbz     x16, 1f
        br      x16
1:      mov     x0, #0
        ret
        .cfi_endproc
        .size   dlmopen, .-dlmopen

#else
#error "dlsym needs a stub for this architecture"
#endif

        .section .note.GNU-stack, "", %progbits
