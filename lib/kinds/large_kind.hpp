#pragma once

#include "kinds/kind.hpp"

namespace tensorpool::kinds {

/// Blocks of whole pages, and pages on which no caller has a block. The look-up of such a block
/// yields all that a check needs, so every free is checked in every pool.
class LargeKind : public Kind {
public:
    bool free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
              Changes& changes) const noexcept override;
    Found find(PoolParts& pool, const void* p, PageEntry entry) const noexcept override;
    void* resize(PoolParts& pool, void* p, const Found& found,
                 std::size_t bytes) const noexcept override;
    std::size_t recorded_bytes(const void* p, PageEntry entry) const noexcept override;
};
inline constexpr LargeKind large_kind;

/// Blocks of whole pages whose free a server notes (block_server.hpp) before it happens.
class NotedKind final : public LargeKind {
public:
    bool free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
              Changes& changes) const noexcept override;
};
inline constexpr NotedKind noted_kind;

/// Takes the block of whole pages that the thread freed last, if its size fits, without the rest of
/// the slow path. Returns nullptr if that is not possible.
void* take_last_pages(PoolParts& pool, std::size_t bytes) noexcept;
/// Like `take_last_pages`, and also takes other blocks of the thread's, and those that all threads
/// share.
void* take_free_pages(PoolParts& pool, std::size_t bytes) noexcept;
/// Takes a block for at least `bytes` bytes from the thread's cache or from the page heap.
void* allocate_whole_pages(PoolParts& pool, blocks::Cache* cache, const Request& request,
                           SlowPath& path) noexcept;
/// Frees a block of whole pages whose pointer was checked. Returns whether it is time to look after
/// retention, which this function has done then.
bool free_large(PoolParts& pool, Span& span, Changes& changes) noexcept;
/// Makes the block in use at `p` longer or shorter without copying its content, so that it holds
/// `bytes` bytes. Returns the address of the block, which changes if its pages were moved. Returns
/// nullptr and leaves the block unchanged if it cannot grow, is not a block of whole pages of this
/// pool, or would have as many pages as before or none.
void* resize_pages(PoolParts& pool, void* p, std::size_t bytes, SlowPath& path) noexcept;
/// Returns whether whole pages for which `found` stands may serve a block of `bytes` bytes in
/// place: at least half of them stays in use.
bool shrinks_in_place(const Found& found, std::size_t bytes) noexcept;
/// Touches what was committed for this block, up to the requested bytes. If the system refuses, the
/// caller's first access touches the pages.
void prefault(PoolParts& pool, void* block, std::size_t bytes, const Changes& changes) noexcept;

/// Whether a request for so many bytes at this alignment can be a block of whole pages. If not,
/// `path.refusal` says why.
bool is_possible_size(const Request& request, SlowPath& path) noexcept;

// The route.
bool takes_any(const PoolParts& pool, const Request& request) noexcept;
void* allocate_large(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
