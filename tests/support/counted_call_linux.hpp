#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace tensorpool::testing {

/// The instructions that one call executes on its thread. x86-64 only.
struct CountedCall {
    unsigned instructions = 0;
    /// Instructions that lock a cache line or wait until all stores are visible.
    unsigned locked = 0;
    unsigned system_calls = 0;
    /// The addresses of the words that the first `locked` of these instructions access, or 0 where
    /// a word belongs to the thread.
    static constexpr unsigned max_words = 64;
    std::uintptr_t words[max_words] = {};
};

namespace counting {

using Registers = gregset_t;

inline bool is_prefix(std::uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xF0 || byte == 0xF2 || byte == 0xF3 ||
           byte == 0x2E || byte == 0x36 || byte == 0x3E || byte == 0x26 || byte == 0x64 ||
           byte == 0x65;
}

/// Returns the value of the register with this number in an instruction (Intel, volume 2, 2.1.5).
inline std::uintptr_t register_of(const Registers& registers, unsigned number) {
    constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<std::uintptr_t>(registers[order[number]]);
}

/// Returns the address that the instruction at `code` accesses. Returns 0 if it is relative to the
/// thread.
inline std::uintptr_t address_in(const std::uint8_t* code, const Registers& registers) {
    const auto displacement = [](const std::uint8_t* at) {
        std::int32_t value = 0;
        std::memcpy(&value, at, sizeof value);
        return static_cast<std::uintptr_t>(std::intptr_t{value});
    };
    for (; is_prefix(*code); ++code) {
        if (*code == 0x64 || *code == 0x65) return 0;
    }
    const unsigned rex = (*code & 0xF0) == 0x40 ? *code++ : 0U;
    const bool is_long = *code == 0x0F;
    if (is_long) ++code;
    const std::uint8_t opcode = *code++;
    const unsigned mode = *code >> 6;
    const unsigned base = *code & 7;
    ++code;
    if (mode == 3) return 0;       // a fence
    if (mode == 0 && base == 5) {  // relative to the next instruction
        const bool has_byte = is_long ? opcode == 0xBA : opcode == 0x80 || opcode == 0x83;
        const bool has_word = !is_long && opcode == 0x81;
        const std::uint8_t* const next = code + 4 + (has_byte ? 1 : 0) + (has_word ? 4 : 0);
        return reinterpret_cast<std::uintptr_t>(next) + displacement(code);
    }
    std::uintptr_t address = 0;
    bool has_base = true;
    if (base == 4) {
        const std::uint8_t sib = *code++;
        const unsigned index = (sib >> 3 & 7) | (rex & 2) << 2;
        if (index != 4) address = register_of(registers, index) << (sib >> 6);
        has_base = mode != 0 || (sib & 7) != 5;
        if (has_base) address += register_of(registers, (sib & 7) | (rex & 1) << 3);
    } else {
        address = register_of(registers, base | (rex & 1) << 3);
    }
    if (mode == 1) return address + static_cast<std::uintptr_t>(static_cast<std::int8_t>(*code));
    return mode == 2 || !has_base ? address + displacement(code) : address;
}

/// Whether the instruction at `code` has a lock prefix, exchanges with memory, or is `mfence`.
inline bool is_locked(const std::uint8_t* code) {
    for (; is_prefix(*code); ++code) {
        if (*code == 0xF0) return true;
    }
    if ((*code & 0xF0) == 0x40) ++code;  // REX
    const bool is_exchange = *code == 0x86 || *code == 0x87;
    if (is_exchange) return code[1] < 0xC0;  // not between two registers
    return code[0] == 0x0F && code[1] == 0xAE && code[2] == 0xF0;
}

inline constinit CountedCall counted = {};
inline constinit volatile bool counts = false;
inline constinit volatile bool steps = false;
inline struct sigaction action_before = {};

inline void before_an_instruction(int, siginfo_t*, void* context) {
    constexpr long long trap_flag = 0x100;
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (steps) {
        registers[REG_EFL] |= trap_flag;
    } else {
        registers[REG_EFL] &= ~trap_flag;
    }
    if (!counts) return;
    const auto* const code = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
    ++counted.instructions;
    if (is_locked(code)) {
        if (counted.locked < CountedCall::max_words)
            counted.words[counted.locked] = address_in(code, registers);
        ++counted.locked;
    }
    if (code[0] == 0x0F && code[1] == 0x05) ++counted.system_calls;
}

}  // namespace counting

/// Counts what this thread executes from the return of `begin_counting` to the call of
/// `end_counting`: with the processor's trap flag set, each instruction raises a signal. One thread
/// at a time. Make the calls once before counting them, because the loader may look up a function's
/// name at its first call.
[[gnu::always_inline]] inline void begin_counting() {
    struct sigaction action = {};
    action.sa_sigaction = counting::before_an_instruction;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &counting::action_before);
    counting::counted = {};
    counting::steps = true;
    raise(SIGTRAP);
    counting::counts = true;
}
[[gnu::always_inline]] inline CountedCall end_counting() {
    counting::counts = false;
    counting::steps = false;
    sigaction(SIGTRAP, &counting::action_before, nullptr);
    return counting::counted;
}

/// Counts what `call` executes.
template <class Call>
CountedCall count_call(Call call) {
    begin_counting();
    call();
    return end_counting();
}

}  // namespace tensorpool::testing
