#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "models/subject.hpp"

namespace tensorpool::testing {

/// The pool differs from the model; the text says how.
class Mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws a Mismatch with a text formatted as by printf.
[[noreturn, gnu::format(printf, 1, 2)]] void mismatch(const char* format, ...);

/// Whether a pool may refuse requests that are within its limits.
enum class Refusals { none, may_happen };

/// A model of a pool: a std::map of the blocks in use, and the expected value of every metric. Each
/// call is passed to the pool, and throws Mismatch if the pool gives a wrong result; neither may be
/// used after that. Only one thread may use the model and the pool, but caches of other threads may
/// hold free blocks.
class PoolModel {
public:
    PoolModel(Subject& subject, const PoolOptions& options, Refusals refusals);

    /// Each of these returns false if the pool refused the request and so changed nothing. They
    /// check contents, alignment and size, that blocks do not overlap, and then all statistics.
    bool allocate(std::size_t bytes);
    bool allocate(std::size_t bytes, std::size_t alignment);
    bool try_allocate(std::size_t bytes, std::size_t alignment);
    bool allocate_zeroed(std::size_t count, std::size_t element_bytes);
    /// Both use the k-th block by address, modulo the number of blocks. They do nothing if there is
    /// none.
    bool reallocate(std::size_t k, std::size_t new_bytes);
    enum class How { unsized, with_size, with_usable_size, with_alignment };
    void deallocate(std::size_t k, How how);
    void deallocate_all();
    bool reserve(std::size_t capacity);
    void trim();
    /// Compares the pool's answers about an address with the map.
    void check_address(const void* p) const;
    /// Checks the contents of all blocks, and all statistics.
    void check() const;
    /// Checks that nothing is in use, parked or free after everything was freed and trimmed.
    void check_empty() const;
    std::size_t count() const { return blocks_.size(); }
    std::size_t bytes_in_use() const { return in_use_bytes_; }
    /// Counts calls that bypassed the model: blocks allocated and freed, and failed requests.
    /// With protected blocks, the model takes over what the pool allocated for them.
    void count_others(std::uint64_t calls, std::size_t bytes, std::uint64_t failed = 0);

private:
    struct Block {
        std::size_t requested;
        std::size_t usable;
        std::size_t alignment;  // 0 for the default
        std::uint64_t mark;
        std::size_t held = usable;  // what the pool counts; more than `usable` for protected blocks
        unsigned bucket = 0;        // where the pool counts it; `bucket_count` for whole pages
    };
    using Blocks = std::map<std::uintptr_t, Block>;
    struct Totals {
        std::uint64_t allocations = 0, deallocations = 0, requested = 0, allocated = 0,
                      failures = 0;
    };

    template <class Call>
    void* call(Call&& call);
    bool keep(void* p, std::size_t bytes, std::size_t alignment);
    Block measure(void* p, std::size_t bytes, std::size_t alignment);
    void check_size(const Block& block, bool is_protected) const;
    bool is_hardened() const { return options_.checks == Checks::hardened; }
    std::size_t extent_of(const Block& block) const;
    void insert(void* p, const Block& block);
    bool refused(std::size_t bytes, std::size_t limit);
    void check_block(std::uintptr_t at, const Block& block) const;
    void check_statistics() const;
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
    std::uint64_t guarded_ = 0;  // blocks that were guarded so far
    std::uint64_t next_mark_ = 1;
};

}  // namespace tensorpool::testing
