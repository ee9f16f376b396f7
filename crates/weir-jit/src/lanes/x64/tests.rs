use super::*;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter, MemorySizeOptions};

/// The disassembly, one instruction per line.
fn text(write: impl FnOnce(&mut Assembler)) -> Vec<String> {
    let mut asm = Assembler::default();
    write(&mut asm);
    let end = asm.code.len();
    let code = asm.finish();
    let mut decoder = Decoder::with_ip(64, &code[..end], 0, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_memory_size_options(MemorySizeOptions::Never);
    options.set_branch_leading_zeros(false);
    let mut lines = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "{lines:?}");
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        lines.push(line);
    }
    lines
}

fn check(write: impl FnOnce(&mut Assembler), expected: &str) {
    check_all(write, &[expected]);
}

fn check_all(write: impl FnOnce(&mut Assembler), expected: &[&str]) {
    assert_eq!(text(write), expected);
}

#[test]
fn registers_of_all_numbers() {
    let three = |a, b, c| move |asm: &mut Assembler| asm.binary(VPADDQ, Zmm(a), Zmm(b), Zmm(c).into());
    check(three(1, 2, 3), "vpaddq zmm1, zmm2, zmm3");
    check(three(9, 18, 27), "vpaddq zmm9, zmm18, zmm27");
    check(three(31, 8, 16), "vpaddq zmm31, zmm8, zmm16");
    check(three(16, 31, 8), "vpaddq zmm16, zmm31, zmm8");
}

#[test]
fn memory_of_all_kinds() {
    let load = |mem| move |asm: &mut Assembler| asm.unary(VMOVDQU64, Zmm(20), Operand::Memory(mem));
    check(load(Mem::At(RDX, 0)), "vmovdqu64 zmm20, [rdx]");
    check(load(Mem::At(RDX, 64)), "vmovdqu64 zmm20, [rdx+40h]");
    check(load(Mem::At(RDX, 8)), "vmovdqu64 zmm20, [rdx+8]");
    check(load(Mem::At(RSP, 8192)), "vmovdqu64 zmm20, [rsp+2000h]");
    check(load(Mem::At(RSP, 0x12345)), "vmovdqu64 zmm20, [rsp+12345h]");
    check(load(Mem::At(RBP, 0)), "vmovdqu64 zmm20, [rbp]");
    check(load(Mem::At(Gpr(13), 0)), "vmovdqu64 zmm20, [r13]");
    check(load(Mem::At(Gpr(12), -64)), "vmovdqu64 zmm20, [r12-40h]");
    check(
        |asm| asm.binary(VPANDQ, Zmm(1), Zmm(2), Operand::Broadcast(Mem::At(RDI, 72))),
        "vpandq zmm1, zmm2, [rdi+48h]{1to8}",
    );
    let broadcast = |masking| move |asm: &mut Assembler| asm.broadcast(Zmm(5), Mem::At(RDI, 16), masking);
    check(broadcast(Masking::None), "vpbroadcastq zmm5, [rdi+10h]");
    check(broadcast(Masking::Merge(KReg(2))), "vpbroadcastq zmm5{k2}, [rdi+10h]");
    check(broadcast(Masking::Zero(KReg(7))), "vpbroadcastq zmm5{k7}{z}, [rdi+10h]");
}

#[test]
fn constants_lie_behind_the_code() {
    let lines = text(|asm| {
        let one = asm.constant(&1u64.to_le_bytes());
        let table = asm.constant(&[7; 64]);
        assert_eq!(asm.constant(&1u64.to_le_bytes()), one);
        asm.binary(VPADDQ, Zmm(1), Zmm(2), Operand::Broadcast(Mem::Pool(one)));
        asm.binary(VPSHUFB, Zmm(1), Zmm(2), Operand::Memory(Mem::Pool(table)));
        asm.compare_lanes(VPCMPUQ, KReg(3), Zmm(4), Operand::Broadcast(Mem::Pool(one)), Some(1));
    });
    // Addresses count from the start: code, then the pool at 64.
    assert_eq!(
        lines,
        [
            "vpaddq zmm1, zmm2, [40h]{1to8}",
            "vpshufb zmm1, zmm2, [80h]",
            "vpcmpltuq k3, zmm4, [40h]{1to8}",
        ]
    );
}

#[test]
fn vectors() {
    let all = [
        (VPSUBQ, "vpsubq"),
        (VPMULLQ, "vpmullq"),
        (VPANDQ, "vpandq"),
        (VPANDNQ, "vpandnq"),
        (VPORQ, "vporq"),
        (VPXORQ, "vpxorq"),
        (VPMAXUQ, "vpmaxuq"),
        (VPMINUQ, "vpminuq"),
        (VPSLLVQ, "vpsllvq"),
        (VPSRLVQ, "vpsrlvq"),
        (VPSRAVQ, "vpsravq"),
        (VPROLVQ, "vprolvq"),
        (VPROLVD, "vprolvd"),
        (VPSHUFB, "vpshufb"),
        (VPUNPCKLQDQ, "vpunpcklqdq"),
        (VPUNPCKHQDQ, "vpunpckhqdq"),
        (VPBLENDMQ, "vpblendmq"),
    ];
    for (op, name) in all {
        check(
            |asm| asm.binary(op, Zmm(1), Zmm(12), Zmm(23).into()),
            &format!("{name} zmm1, zmm12, zmm23"),
        );
    }
    for (op, name) in [(VPOPCNTQ, "vpopcntq"), (VPLZCNTQ, "vplzcntq"), (VMOVDQU64, "vmovdqu64")] {
        check(
            |asm| asm.unary(op, Zmm(1), Zmm(23).into()),
            &format!("{name} zmm1, zmm23"),
        );
    }
    let shifts = [
        (VPSLLQ, "vpsllq"),
        (VPSRLQ, "vpsrlq"),
        (VPSRAQ, "vpsraq"),
        (VPROLQ, "vprolq"),
        (VPROLD, "vprold"),
    ];
    for (op, name) in shifts {
        check(
            |asm| asm.shift(op, Zmm(17), Zmm(23), 9),
            &format!("{name} zmm17, zmm23, 9"),
        );
    }
    check(
        |asm| asm.binary_with_immediate(VPSHRDQ, Zmm(1), Zmm(2), Zmm(3).into(), 48),
        "vpshrdq zmm1, zmm2, zmm3, 30h",
    );
    check(
        |asm| asm.gather(Zmm(17), Zmm(30), 0x48, KReg(2)),
        "vpgatherqq zmm17, k2, [zmm30*1+48h]",
    );
    check(
        |asm| asm.binary_masked(VPBLENDMQ, Zmm(1), Zmm(2), Zmm(3).into(), Masking::Merge(KReg(4))),
        "vpblendmq zmm1{k4}, zmm2, zmm3",
    );
    check(|asm| asm.vzeroupper(), "vzeroupper");
}

#[test]
fn parts_of_vectors() {
    let at = Mem::At(Gpr(9), 32);
    let behind = Mem::At(RBX, 64);
    check_all(
        |asm| asm.load_half(Zmm(17), [at, behind]),
        &["vmovdqu64 xmm17, [r9+20h]", "vinserti64x2 ymm17, ymm17, [rbx+40h], 1"],
    );
    check_all(
        |asm| asm.store_half(Zmm(17), [at, behind]),
        &["vmovdqu64 [r9+20h], xmm17", "vextracti64x2 [rbx+40h], ymm17, 1"],
    );
    check(
        |asm| asm.insert_upper_half(Zmm(17), Zmm(3)),
        "vinserti64x4 zmm17, zmm17, ymm3, 1",
    );
    check(
        |asm| asm.extract_upper_half(Zmm(3), Zmm(17)),
        "vextracti64x4 ymm3, zmm17, 1",
    );
    check(
        |asm| asm.extract_quarter(Zmm(1), Zmm(17), 2),
        "vextracti64x2 xmm1, zmm17, 2",
    );
    check(|asm| asm.extract_lowest_word(Gpr(9), Zmm(17)), "vmovq r9, xmm17");
    check(|asm| asm.extract_lowest_word(RBX, Zmm(4)), "vmovq rbx, xmm4");
    check(|asm| asm.extract_second_word(Gpr(15), Zmm(28)), "vpextrq r15, xmm28, 1");
    let part = |op, bytes, byte| move |asm: &mut Assembler| asm.store_part(op, Zmm(17), at, bytes, byte);
    check(part(VMOVQ_STORE, 8, None), "vmovq [r9+20h], xmm17");
    check(part(VMOVHPS_STORE, 8, None), "vmovhps [r9+20h], xmm17");
    check(part(VPEXTRD, 4, Some(2)), "vpextrd [r9+20h], xmm17, 2");
    check(part(VPEXTRW, 2, Some(4)), "vpextrw [r9+20h], xmm17, 4");
    check(part(VPEXTRB, 1, Some(8)), "vpextrb [r9+20h], xmm17, 8");
}

#[test]
fn masks() {
    let compare = |op, byte| move |asm: &mut Assembler| asm.compare_lanes(op, KReg(5), Zmm(12), Zmm(23).into(), byte);
    check(compare(VPTESTMQ, None), "vptestmq k5, zmm12, zmm23");
    check(compare(VPTESTNMQ, None), "vptestnmq k5, zmm12, zmm23");
    check(compare(VPCMPUQ, Some(6)), "vpcmpnleuq k5, zmm12, zmm23");
    check(compare(VPCMPQ, Some(1)), "vpcmpltq k5, zmm12, zmm23");
    for (op, name) in [
        (MaskOp::And, "kandb"),
        (MaskOp::AndNot, "kandnb"),
        (MaskOp::Or, "korb"),
        (MaskOp::Xor, "kxorb"),
    ] {
        check(
            |asm| asm.mask_op(op, KReg(1), KReg(6), KReg(3)),
            &format!("{name} k1, k6, k3"),
        );
    }
    check(|asm| asm.mask_not(KReg(7), KReg(2)), "knotb k7, k2");
    check(|asm| asm.mask_move(KReg(7), KReg(2)), "kmovb k7, k2");
    check(|asm| asm.mask_from_gpr(KReg(4), RAX), "kmovb k4, eax");
    check(|asm| asm.mask_to_gpr(RAX, KReg(4)), "kmovb eax, k4");
    check(|asm| asm.mask_load(KReg(4), Mem::At(RSP, 64)), "kmovb k4, [rsp+40h]");
    check(|asm| asm.mask_store(KReg(4), Mem::At(RSP, 64)), "kmovb [rsp+40h], k4");
    check(|asm| asm.mask_test(KReg(1)), "kortestb k1, k1");
}

#[test]
fn general_registers() {
    check(|asm| asm.load(Gpr(9), Mem::At(RSP, 8)), "mov r9, [rsp+8]");
    check(|asm| asm.load(RBX, Mem::At(RDI, 0)), "mov rbx, [rdi]");
    check(|asm| asm.prefetch(Mem::At(RAX, 0)), "prefetcht0 [rax]");
    check(|asm| asm.prefetch(Mem::At(Gpr(13), 64)), "prefetcht0 [r13+40h]");
    check(|asm| asm.store(RAX, Mem::At(RSP, 512)), "mov [rsp+200h], rax");
    check(|asm| asm.or_word(Mem::At(RBX, 24), RAX), "or [rbx+18h], rax");
    check(|asm| asm.shift_left(RAX, RDX, RCX), "shlx rax, rdx, rcx");
    check(|asm| asm.shift_right(RSI, RAX, RCX), "shrx rsi, rax, rcx");
    check(|asm| asm.zero_extend_byte(RAX), "movzx eax, al");
    check(|asm| asm.store_byte(RAX, Mem::At(RSP, 70)), "mov [rsp+46h], al");
    check(|asm| asm.or_byte(Mem::At(RBX, 24), RAX), "or [rbx+18h], al");
    check(|asm| asm.or_byte(Mem::At(RBP, 0), RAX), "or [rbp], al");
    check(|asm| asm.move_register(RAX, RSP), "mov rax, rsp");
    check(|asm| asm.move_register(Gpr(12), RSI), "mov r12, rsi");
    check(|asm| asm.zero(RCX), "xor ecx, ecx");
    check(|asm| asm.add(RDX, 64), "add rdx, 40h");
    check(|asm| asm.add(Gpr(9), 1000), "add r9, 3E8h");
    check(|asm| asm.and(RSP, -64), "and rsp, 0FFFFFFFFFFFFFFC0h");
    check(|asm| asm.subtract(RSP, 640), "sub rsp, 280h");
    check(|asm| asm.compare(RCX, 8), "cmp rcx, 8");
    check(|asm| asm.test(RAX), "test rax, rax");
    check(|asm| asm.test(Gpr(13)), "test r13, r13");
    check(|asm| asm.move_if_zero(Gpr(9), RAX), "cmove r9, rax");
    check(|asm| asm.move_if_zero(RBP, Gpr(12)), "cmove rbp, r12");
    check(|asm| asm.compare_byte(RAX, Mem::At(RSP, 72)), "cmp al, [rsp+48h]");
    check(|asm| asm.compare_byte_immediate(RAX, 0xff), "cmp al, 0FFh");
    check(|asm| asm.push(Gpr(12)), "push r12");
    check(|asm| asm.pop(RBX), "pop rbx");
    check(|asm| asm.ret(), "ret");
}

#[test]
fn jumps_go_to_their_labels() {
    let lines = text(|asm| {
        let (back, on) = (asm.label(), asm.label());
        asm.bind(back);
        asm.jump_if(Condition::Equal, on);
        asm.jump_if(Condition::NotEqual, back);
        asm.jump(on);
        asm.bind(on);
        asm.ret();
    });
    assert_eq!(lines, ["je 11h", "jne 0", "jmp 11h", "ret"]);
}
