#pragma once

#include "kinds/kind.hpp"
#include "kinds/route.hpp"
#include "statistics/profile/profiled_blocks.hpp"

// What looks on: the heap profile and guards. Both take the slow path of a call when the countdown
// of a thread's cache (`bytes_to_sample`) does not suffice for a request.

namespace tensorpool::kinds {

/// Whether the heap profile may sample blocks of the pool. A tool that watches memory sees every
/// call, so all of them take the slow path.
bool is_profiled(const PoolParts& pool) noexcept;
/// Returns a guarded block, or a small block of the set outside of its spans that the heap profile
/// samples, or nullptr if the request is to be served as any other.
void* allocate_sampled(PoolParts& pool, blocks::BucketSet& set, blocks::Cache& cache,
                       unsigned bucket, std::size_t bytes, std::size_t alignment,
                       SlowPath& path) noexcept;
/// Serves a request for a block of whole pages by `allocate`, unless a guarded block serves it, and
/// samples the block if that is due.
using AllocatePages = void* (*)(PoolParts& pool, blocks::Cache* cache, const Request& request,
                                SlowPath& path) noexcept;
void* sample_pages(PoolParts& pool, const Request& request, SlowPath& path,
                   AllocatePages allocate) noexcept;
/// Notes that a block of whole pages was lengthened: it counts as a new one.
void profile_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept;
/// Ends a sample whose block is freed.
void end_profile(PoolParts& pool, statistics::ProfiledBlock& block) noexcept;
/// Frees a block of whole pages that is sampled or charged. Returns what `free_large` does.
bool free_marked(PoolParts& pool, Span& span, Changes& changes) noexcept;
/// Forgets all samples of a pool that is about to be destroyed.
void forget_profile(PoolParts& pool) noexcept;

/// Sampled small blocks, outside of the spans of buckets.
class SampledKind final : public Kind {
public:
    bool free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
              Changes& changes) const noexcept override;
    Found find(PoolParts& pool, const void* p, PageEntry entry) const noexcept override;
    void* resize(PoolParts& pool, void* p, const Found& found,
                 std::size_t bytes) const noexcept override;
    std::size_t recorded_bytes(const void* p, PageEntry entry) const noexcept override;
};
inline constexpr SampledKind sampled_kind;

/// Blocks of buckets that a scope charges to its budget.
class ChargedKind final : public Kind {
public:
    bool free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
              Changes& changes) const noexcept override;
    Found find(PoolParts& pool, const void* p, PageEntry entry) const noexcept override;
    void* resize(PoolParts& pool, void* p, const Found& found,
                 std::size_t bytes) const noexcept override;
    std::size_t recorded_bytes(const void* p, PageEntry entry) const noexcept override;
};
inline constexpr ChargedKind charged_kind;

/// Takes the charge of a block of whole pages, and refunds it when this object ends.
class PagesCharge {
public:
    explicit PagesCharge(Span& span) noexcept
        : charge_(span.charged ? &span.take_charge() : nullptr), bytes_(span.bytes()) {}
    ~PagesCharge();
    PagesCharge(const PagesCharge&) = delete;
    PagesCharge& operator=(const PagesCharge&) = delete;

private:
    blocks::BlockCharge* const charge_;
    const std::size_t bytes_;
};

/// Returns a charged amount of a block that was freed.
void refund(blocks::BlockCharge& charge, std::size_t bytes) noexcept;
/// Returns the number of the budget that is charged for what the calling thread allocates now: the
/// pool's, or that of the thread's scope; 0 for none.
std::uint64_t charged_budget(const PoolParts& pool) noexcept;
/// Returns whether a resize to `bytes` bytes must move the block in use at `p`, so that it is
/// charged like a new one: a scope of the calling thread charges another budget than the one that
/// the block is charged to. Takes no lock.
bool must_charge(const PoolParts& pool, const void* p, std::size_t bytes) noexcept;

/// Allocates a block of whole pages that is charged to the scope's budget.
void* allocate_charged_pages(PoolParts& pool, blocks::Cache* cache, const Request& request,
                             SlowPath& path) noexcept;

// The route.
bool takes_charged(const PoolParts& pool, const Request& request) noexcept;
void* allocate_charged(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
