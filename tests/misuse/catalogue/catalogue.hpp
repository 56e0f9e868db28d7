#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include <tensorpool/arena_options.hpp>
#include <tensorpool/memory_pool.hpp>

/// The catalogue of misuses: programs of a few lines, each with the outcome that is expected of it
/// in every mode of checks. README.md describes the outcomes.
namespace tensorpool::misuse {

/// How a program ends: the kind of misuse that the report names, or one of the texts below. Where
/// chance decides, both outcomes with " or " between them.
using Outcome = const char*;

/// The program goes on, and nothing is reported.
inline constexpr Outcome passes = "passes";
/// The program goes on, and the misuse has no effect: the call returns what its documentation says
/// about such an argument, or the access finds nothing.
inline constexpr Outcome harmless = "harmless";
/// The system ends the program at an access to an address without memory.
inline constexpr Outcome by_system = "signal";
/// The pool has no part in it: the next allocator ends the program.
inline constexpr Outcome by_next_allocator = "next allocator";

inline constexpr Outcome double_free = "double-free";
inline constexpr Outcome foreign_free = "foreign-free";
inline constexpr Outcome interior_free = "interior-free";
inline constexpr Outcome wrong_pool = "wrong-pool";
inline constexpr Outcome wrong_size = "wrong-size";
inline constexpr Outcome mismatched_free = "mismatched-free";
inline constexpr Outcome overrun = "overrun";
inline constexpr Outcome write_after_free = "write-after-free";
inline constexpr Outcome access_beyond = "access-beyond";
inline constexpr Outcome access_after_free = "access-after-free";
inline constexpr Outcome invalid_query = "invalid-query";
inline constexpr Outcome leak = "leak";
inline constexpr Outcome wrong_thread = "wrong-thread";
inline constexpr Outcome scope_order = "scope-order";
inline constexpr Outcome released_handle = "released-handle";
inline constexpr Outcome outlived_owner = "outlived-owner";
inline constexpr Outcome invalid_argument = "throws invalid_argument";
inline constexpr Outcome logic_error = "throws logic_error";
inline constexpr Outcome bad_alloc = "throws bad_alloc";

inline constexpr std::size_t mode_count = 5;
/// The outcomes in the modes off, basic, full, sampled and hardened. In `sampled`, every block is
/// guarded.
using Outcomes = std::array<Outcome, mode_count>;

constexpr Outcomes always(Outcome outcome) {
    return {outcome, outcome, outcome, outcome, outcome};
}
/// A misuse of an object that knows only two levels: with and without checks.
constexpr Outcomes checked(Outcome outcome) {
    return {passes, outcome, outcome, passes, outcome};
}
/// An access that only protected memory stops.
constexpr Outcomes protected_by(Outcome sampled, Outcome hardened) {
    return {passes, passes, passes, sampled, hardened};
}

struct Case {
    const char* name;
    void (*run)();
    Outcomes expected;
};

std::span<const Case> double_frees() noexcept;
std::span<const Case> wrong_pointers() noexcept;
std::span<const Case> wrong_sizes() noexcept;
std::span<const Case> wrong_accesses() noexcept;
std::span<const Case> handles_and_leaks() noexcept;
std::span<const Case> arenas() noexcept;
std::span<const Case> scratches_and_contexts() noexcept;
std::span<const Case> planned_arenas() noexcept;
std::span<const Case> device_allocators() noexcept;
std::span<const Case> wrong_arguments() noexcept;
/// These call malloc, free, new and delete, and run with the interposer in LD_PRELOAD.
std::span<const Case> interposed_accesses() noexcept;
std::span<const Case> interposed_frees() noexcept;

// What the cases share.

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::size_t small = 100;  // lies in a block of 128 bytes
inline constexpr std::size_t large = 300 * kib;

/// The checks of the mode in which this process runs its case.
Checks checks() noexcept;
void set_checks(Checks checks) noexcept;
PoolOptions pool_options(const char* name);
ArenaOptions arena_options(const char* name);
/// The pool that a case uses, named "mine", and another one, named "theirs". Neither is destroyed.
MemoryPool& pool();
MemoryPool& other_pool();
/// Allocates and frees blocks of this size until the pool reuses all that were free before.
void reuse_blocks(std::size_t bytes);
/// Ends the program with the outcome `harmless` if `is_harmless` is true.
void expect_harmless(bool is_harmless);

template <class Function>
void on_other_thread(Function function) {
    std::thread(function).join();
}

/// Returns the same pointer, without the compiler seeing that it is the same.
template <class T>
[[gnu::noinline]] T* hidden(T* p) noexcept {
    asm volatile("" : "+r"(p));
    return p;
}
inline void* plus(void* p, std::ptrdiff_t bytes) noexcept {
    return hidden(hidden(static_cast<char*>(p)) + bytes);
}
/// Writes a byte. All bytes of canaries are odd, so an even one always differs.
[[gnu::noinline]] inline void write(void* p, std::ptrdiff_t at) {
    static_cast<volatile char*>(p)[at] = 2;
}
[[gnu::noinline]] inline char read(const void* p, std::ptrdiff_t at) {
    return static_cast<const volatile char*>(p)[at];
}
inline void write_range(void* p, std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t at = begin; at != end; ++at) write(p, at);
}

}  // namespace tensorpool::misuse
