#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace tensorpool::testing {

/// The instructions that one call executes on its thread. x86-64 only.
struct CountedCall {
    unsigned instructions = 0;
    /// Instructions that lock a cache line or wait until all stores are visible.
    unsigned locked = 0;
    unsigned system_calls = 0;
};

namespace counting {

/// Whether the instruction at `code` has a lock prefix, exchanges with memory, or is `mfence`.
inline bool is_locked(const std::uint8_t* code) {
    const auto is_prefix = [](std::uint8_t byte) {
        return byte == 0x66 || byte == 0x67 || byte == 0xF2 || byte == 0xF3 || byte == 0x2E ||
               byte == 0x36 || byte == 0x3E || byte == 0x26 || byte == 0x64 || byte == 0x65;
    };
    while (is_prefix(*code)) ++code;
    if (*code == 0xF0) return true;
    if ((*code & 0xF0) == 0x40) ++code;  // REX
    const bool is_exchange = *code == 0x86 || *code == 0x87;
    if (is_exchange) return code[1] < 0xC0;  // not between two registers
    return code[0] == 0x0F && code[1] == 0xAE && code[2] == 0xF0;
}

inline constinit CountedCall counted = {};
inline constinit volatile bool counts = false;
inline constinit volatile bool steps = false;

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
    if (is_locked(code)) ++counted.locked;
    if (code[0] == 0x0F && code[1] == 0x05) ++counted.system_calls;
}

}  // namespace counting

/// Counts what `call` executes: with the processor's trap flag set, each instruction raises a
/// signal. One thread at a time. Make the call once before counting it, because the loader may look
/// up a function's name at its first call.
template <class Call>
CountedCall count_call(Call call) {
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_sigaction = counting::before_an_instruction;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before);
    counting::counted = {};
    counting::steps = true;
    raise(SIGTRAP);
    counting::counts = true;
    call();
    counting::counts = false;
    counting::steps = false;
    sigaction(SIGTRAP, &before, nullptr);
    return counting::counted;
}

}  // namespace tensorpool::testing
