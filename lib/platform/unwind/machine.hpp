#pragma once

#include <cstddef>
#include <cstdint>

/// What the unwinder knows of the processor: x86-64. Registers have the numbers of DWARF (System V
/// ABI, AMD64 supplement, figure 3.36).
namespace tensorpool::platform::unwind {

inline constexpr std::size_t register_count = 17;
inline constexpr std::size_t stack_pointer = 7;

struct Registers {
    std::uintptr_t value[register_count];
};

/// Stores the registers that a function preserves, and the stack pointer. Returns the address of an
/// instruction at which they have these values.
[[gnu::always_inline]] inline std::uintptr_t take_registers(Registers& to) noexcept {
    std::uintptr_t address = 0;
    asm volatile(
        "movq %%rbx, 24(%1)\n\t"
        "movq %%rbp, 48(%1)\n\t"
        "movq %%rsp, 56(%1)\n\t"
        "movq %%r12, 96(%1)\n\t"
        "movq %%r13, 104(%1)\n\t"
        "movq %%r14, 112(%1)\n\t"
        "movq %%r15, 120(%1)\n"
        "0:\n\t"
        "leaq 0b(%%rip), %0"
        : "=&r"(address)
        : "r"(to.value)
        : "memory");
    return address;
}

}  // namespace tensorpool::platform::unwind
