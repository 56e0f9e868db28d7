#pragma once

/// @file
/// Where the pools' memory lies, for those that must tell their blocks from others'. Layer `pages`.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// A range of addresses that begins where it always will, and only grows.
class AddressRange {
public:
    constexpr AddressRange() noexcept = default;

    /// Whether `p` lies in it. One subtraction and one comparison. Any thread.
    bool contains(const void* p) const noexcept {
        // Acquire pairs with the release in `set`: who sees a range sees where its words are. Any
        // mix of an old and a new beginning and length says no: see `begin_`.
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
        // As the code below, with two instructions fewer. All loads there acquire, if the compiler
        // moves none.
        static_assert(sizeof(begin_) == 8 && sizeof(bytes_) == 8);
        auto offset = reinterpret_cast<std::uintptr_t>(p);
        bool is_in;
        asm volatile("subq %1, %0" : "+r"(offset) : "m"(begin_) : "cc");
        asm volatile("cmpq %1, %2" : "=@ccb"(is_in) : "m"(bytes_), "r"(offset) : "memory");
        return is_in;
#else
        const std::size_t bytes = bytes_.load(std::memory_order_acquire);
        const std::uintptr_t offset =
            reinterpret_cast<std::uintptr_t>(p) - begin_.load(std::memory_order_relaxed);
        return offset < bytes;
#endif
    }

    /// What the page map says of the page of `p`, for which `contains` said yes on this thread; 0
    /// where that is nothing.
    std::uint64_t page_word(const void* p) const noexcept {
        const std::uintptr_t offset =
            reinterpret_cast<std::uintptr_t>(p) - begin_.load(std::memory_order_relaxed);
        return words_.load(std::memory_order_relaxed)[offset / bytes_per_word].load(
            std::memory_order_acquire);
    }

    using Word = std::atomic<std::uint64_t>;
    static constexpr std::size_t bytes_per_word = 4096;

    /// From one thread at a time, with the same `begin` and `words` and no fewer bytes each time.
    void set(std::uintptr_t begin, std::size_t bytes, const Word* words) noexcept {
        begin_.store(begin, std::memory_order_relaxed);
        words_.store(words, std::memory_order_relaxed);
        bytes_.store(bytes, std::memory_order_release);
    }

private:
    // To begin with as far from all addresses of programs as can be: with this begin and any number
    // of bytes that a program may reserve, the range holds none of them.
    std::atomic<std::uintptr_t> begin_ = std::uintptr_t{1} << (sizeof(std::uintptr_t) * 8 - 1);
    std::atomic<std::size_t> bytes_ = 0;
    std::atomic<const Word*> words_ = nullptr;
};

/// Where the memory of all pools of the process lies; empty before the first of them needs it. What
/// others mapped may lie in between.
extern TENSORPOOL_API constinit AddressRange pool_addresses;

/// Bytes that may be used of the block in use that begins at `p`, of whichever pool; 0 where `p` is
/// no pool's. A look-up without a lock, and no check: of another pointer it means nothing. Any
/// thread, also one that holds a pool's lock.
TENSORPOOL_API std::size_t bytes_of_block_in_use(const void* p) noexcept;

/// Whether `p`, which lies in `pool_addresses`, lies in memory of a pool, and not in what others
/// mapped in between. A look-up without a lock. Any thread.
TENSORPOOL_API bool lies_in_a_pool(const void* p) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
