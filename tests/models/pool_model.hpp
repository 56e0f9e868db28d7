#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "models/subject.hpp"

namespace tensorpool::testing {

/// The pool did not do what the model says it must; the text tells what.
class Mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws it, the text as printf makes it.
[[noreturn, gnu::format(printf, 1, 2)]] void mismatch(const char* format, ...);

/// Where a request may be refused with a good reason.
enum class Refusals { none, may_happen };

/// A pool told by a std::map: what is in use, and what every figure must be. Each call goes to the
/// pool and throws Mismatch where the pool answers wrong; then neither is used any more. One thread
/// uses model and pool; caches of other threads may hold free blocks.
class PoolModel {
public:
    PoolModel(Subject& subject, const PoolOptions& options, Refusals refusals);

    /// False when the pool refused, which has left everything as it was. These check contents,
    /// alignment, size, that blocks do not overlap, and then all figures.
    bool allocate(std::size_t bytes);
    bool allocate(std::size_t bytes, std::size_t alignment);
    bool try_allocate(std::size_t bytes, std::size_t alignment);
    bool allocate_zeroed(std::size_t count, std::size_t element_bytes);
    /// The k-th block by address, modulo how many there are; nothing happens when there is none.
    bool reallocate(std::size_t k, std::size_t new_bytes);
    enum class How { unsized, with_size, with_usable_size, with_alignment };
    void deallocate(std::size_t k, How how);
    void deallocate_all();
    bool reserve(std::size_t capacity);
    void trim();
    /// The pool's answers about this address against the map's.
    void ask_about(const void* p) const;

    /// Contents of all blocks, and all figures.
    void check() const;
    /// Nothing is in use, parked or free, once all is freed and trimmed.
    void check_empty() const;
    std::size_t count() const { return blocks_.size(); }
    std::size_t bytes_in_use() const { return in_use_bytes_; }
    /// Allocations that were made past the model and freed since, and those that failed.
    void count_others(std::uint64_t calls, std::size_t bytes, std::uint64_t failed = 0);

private:
    struct Block {
        std::size_t asked;
        std::size_t usable;
        std::size_t alignment;  // 0 for the default
        std::uint64_t mark;
    };
    using Blocks = std::map<std::uintptr_t, Block>;
    struct Totals {
        std::uint64_t allocations = 0, deallocations = 0, requested = 0, allocated = 0,
                      failures = 0;
    };

    template <class Call>
    void* call(Call&& call);
    bool keep(void* p, std::size_t bytes, std::size_t alignment);
    void insert(void* p, const Block& block);
    bool refused(std::size_t bytes, std::size_t limit);
    void check_block(std::uintptr_t at, const Block& block) const;
    void check_figures() const;
    void count_in_use(const Block& block, std::ptrdiff_t sign);
    Blocks::iterator nth(std::size_t k);
    void give_back(void* p, const Block& block, How how);

    Subject& subject_;
    const PoolOptions options_;
    const Refusals refusals_;
    Blocks blocks_;
    std::size_t in_use_bytes_ = 0;
    std::array<std::size_t, detail::bucket_count + 1> in_use_by_bucket_ = {};
    Totals totals_;
    std::uint64_t next_mark_ = 1;
};

}  // namespace tensorpool::testing
