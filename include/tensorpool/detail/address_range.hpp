#pragma once

/// @file
/// The addresses of the pools' memory, for code that must distinguish their blocks from others'.
/// Layer `pages`.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// A range of addresses whose beginning never changes and whose size only grows.
class AddressRange {
public:
    constexpr AddressRange() noexcept = default;

    /// Returns whether `p` lies in the range. It costs one subtraction and one comparison. Any
    /// thread may call it.
    bool contains(const void* p) const noexcept {
        // The acquire load pairs with the release store in `set`: a thread that sees a range sees
        // where its words are. Any mix of an old and a new beginning and length gives false: see
        // `begin_`.
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
        // The code below with two instructions fewer. On this processor all loads acquire, if the
        // compiler does not reorder them.
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

    /// Returns the page map's word for the page of `p`, an address for which `contains` returned
    /// true on this thread; 0 if the page belongs to nothing.
    std::uint64_t page_word(const void* p) const noexcept {
        const std::uintptr_t offset =
            reinterpret_cast<std::uintptr_t>(p) - begin_.load(std::memory_order_relaxed);
        return words_.load(std::memory_order_relaxed)[offset / bytes_per_word].load(
            std::memory_order_acquire);
    }

    using Word = std::atomic<std::uint64_t>;
    static constexpr std::size_t bytes_per_word = 4096;

    /// Sets the range. One thread at a time may call it, with the same `begin` and `words` and at
    /// least as many bytes each time.
    void set(std::uintptr_t begin, std::size_t bytes, const Word* words) noexcept {
        begin_.store(begin, std::memory_order_relaxed);
        words_.store(words, std::memory_order_relaxed);
        bytes_.store(bytes, std::memory_order_release);
    }

private:
    // Initially as far from all addresses of programs as possible: with this beginning, and any
    // number of bytes that a program can reserve, the range holds none of them.
    std::atomic<std::uintptr_t> begin_ = std::uintptr_t{1} << (sizeof(std::uintptr_t) * 8 - 1);
    std::atomic<std::size_t> bytes_ = 0;
    std::atomic<const Word*> words_ = nullptr;
};

/// The addresses of the memory of all the process's pools; empty before the first pool needs
/// memory. Others' mappings may lie within the range.
extern TENSORPOOL_API constinit AddressRange pool_addresses;

/// Returns the usable bytes of the block in use that begins at `p`, of any pool; 0 if `p` belongs
/// to no pool.
///
/// It is a look-up without a lock and without a check: for other pointers the result has no
/// meaning. Any thread may call it, even one that holds a pool's lock.
TENSORPOOL_API std::size_t bytes_of_block_in_use(const void* p) noexcept;

/// Returns whether `p`, an address within `pool_addresses`, lies in memory of a pool and not in a
/// mapping of others. It is a look-up without a lock. Any thread may call it.
TENSORPOOL_API bool lies_in_a_pool(const void* p) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
