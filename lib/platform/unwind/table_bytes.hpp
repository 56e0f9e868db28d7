#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::platform::unwind {

/// A part of an unwind table that is read from its beginning. Beyond the end, zeros are read and
/// `is_bad` becomes true.
class TableBytes {
public:
    TableBytes(const unsigned char* begin, const unsigned char* end) noexcept
        : at_(begin), end_(end) {}

    bool is_empty() const noexcept { return at_ == end_; }
    bool is_bad() const noexcept { return is_bad_; }
    const unsigned char* at() const noexcept { return at_; }
    const unsigned char* end() const noexcept { return end_; }

    template <class T>
    T take() noexcept {
        T value{};
        if (const unsigned char* const from = skip(sizeof value)) {
            std::memcpy(&value, from, sizeof value);
        }
        return value;
    }
    /// Takes a number of at most 8 bytes, the lowest first.
    std::uint64_t take_number(std::size_t bytes, bool is_signed) noexcept {
        std::uint64_t value = 0;
        const unsigned char* const from = skip(bytes);
        if (from == nullptr) return 0;
        std::memcpy(&value, from, bytes);
        const std::size_t unused = 8 * (sizeof value - bytes);
        if (!is_signed) return value;
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    }
    /// Returns what is skipped; nullptr if there are not as many bytes.
    const unsigned char* skip(std::uint64_t bytes) noexcept {
        if (bytes > static_cast<std::uint64_t>(end_ - at_)) {
            is_bad_ = true;
            at_ = end_;
            return nullptr;
        }
        const unsigned char* const from = at_;
        at_ += bytes;
        return from;
    }
    std::uint64_t take_uleb() noexcept {
        unsigned shift = 0;
        return take_leb(shift);
    }
    std::int64_t take_sleb() noexcept {
        unsigned shift = 0;
        std::uint64_t value = take_leb(shift);
        const bool is_negative = (value >> (shift - 1) & 1U) != 0;
        if (is_negative && shift < 64) value |= UINT64_MAX << shift;
        return static_cast<std::int64_t>(value);
    }

private:
    /// Seven bits a byte, the lowest first. The eighth bit says that more follow.
    std::uint64_t take_leb(unsigned& shift) noexcept {
        std::uint64_t value = 0;
        for (;;) {
            const auto byte = take<std::uint8_t>();
            value |= std::uint64_t{byte & 0x7FU} << shift;
            shift += 7;
            if ((byte & 0x80U) == 0) break;
            if (shift > 56) {  // no table has such a number
                is_bad_ = true;
                at_ = end_;
                break;
            }
        }
        return value;
    }

    const unsigned char* at_;
    const unsigned char* end_;
    bool is_bad_ = false;
};

}  // namespace tensorpool::platform::unwind

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
