#pragma once

#include "kinds/pool_parts.hpp"

namespace tensorpool::kinds {

/// Whether the caller or the pool touches the fresh pages of a block of whole pages first.
enum class FirstTouch : bool { by_caller, by_pool };

struct Request {
    std::size_t bytes;
    std::size_t alignment;
    FirstTouch first_touch = FirstTouch::by_caller;
};

/// One way in which a request is served. A pool has a list of them, which is fixed when the pool is
/// made, and the first that takes a request serves it.
struct Route {
    /// Whether this route serves the request, which depends on its size and on the scopes of the
    /// calling thread.
    bool (*takes)(const PoolParts& pool, const Request& request) noexcept = nullptr;
    /// Returns a block, or nullptr with the reason in `path.refusal`.
    void* (*allocate)(PoolParts& pool, const Request& request, SlowPath& path) noexcept = nullptr;
    /// Whether the block belongs to another layer, which counts and records it and describes a
    /// refusal.
    bool is_lent = false;
};

struct Kind;
/// Adds a kind of pages of another folder, and the route that serves its blocks, which is asked
/// first. Hardened pools have neither. REQUIRES: no pool was made yet, at most four are added, and
/// the number is none of a series of buckets (pages::PageKind).
void add(pages::PageKind number, const Kind& kind, const Route& route) noexcept;

using detail::FreedAs;

/// What a pointer that a caller passed refers to.
struct Found {
    enum class What : std::uint8_t { block, interior, freed, foreign } what = What::foreign;
    void* block = nullptr;           // the beginning of the block, for `block` and `interior`
    unsigned bucket = bucket_count;  // `bucket_count` for blocks of whole pages
    std::size_t usable = 0;
    std::size_t requested = 0;

    bool is_block() const noexcept { return what == What::block; }
};

/// What a free states about its block.
struct Stated {
    static constexpr unsigned nothing = ~0U;
    unsigned bucket = nothing;  // the bucket for the stated size, or `bucket_count`
    FreedAs as;

    bool has_size() const noexcept { return as.bytes != FreedAs::unknown; }
    bool agrees(unsigned with_bucket) const noexcept {
        return bucket == with_bucket || bucket == nothing;
    }
};

/// How blocks on one kind of pages are freed, found and resized. The page map names the kind of
/// each page (pages::PageKind), and each pool has a table with one for each, which depends on its
/// checks. A kind knows nothing of the others.
struct Kind {
    /// Frees the block at `p`, whose page has this entry, or reports a misuse. Returns whether the
    /// slow path is to be ended with `changes`: some kinds leave that out of most calls.
    using Free = bool(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                      Changes& changes) noexcept;
    /// Returns what `p` refers to. REQUIRES: `p` was passed by a caller; it may be any pointer.
    using Find = Found(PoolParts& pool, const void* p, PageEntry entry) noexcept;
    /// Resizes the block in use at `p` in place, or by moving its pages. Returns its address then,
    /// and nullptr if its content must be copied.
    using Resize = void*(PoolParts& pool, void* p, const Found& found, std::size_t bytes) noexcept;
    /// Returns the bytes that a recording states for the block at `p`.
    using RecordedBytes = std::size_t(const void* p, PageEntry entry) noexcept;

    Free* free;
    Find* find;
    Resize* resize;
    RecordedBytes* recorded_bytes;
};

/// For kinds whose blocks always move when they are resized.
inline void* always_moves(PoolParts&, void*, const Found&, std::size_t) noexcept {
    return nullptr;
}

/// The kinds of a pool.
class KindTable {
public:
    constexpr KindTable() noexcept = default;
    /// Returns the kind of a page that belongs to the pool, or of any other page.
    const Kind& of(PageEntry entry) const noexcept {
        return *kinds_[static_cast<unsigned>(entry.kind())];
    }
    constexpr void set(pages::PageKind number, const Kind& kind) noexcept {
        kinds_[static_cast<unsigned>(number)] = &kind;
    }
    constexpr void set_all(const Kind& kind) noexcept { kinds_.fill(&kind); }

private:
    std::array<const Kind*, 64> kinds_ = {};
};

/// Returns what `p`, any pointer, refers to in this pool.
Found find(PoolParts& pool, const void* p) noexcept;
/// Returns the usable bytes of the block in use at `p`; 0 if there is none.
std::size_t usable_size(PoolParts& pool, const void* p) noexcept;
/// Records the end of the block at `p`, before it is freed, if calls are recorded.
void record_end_if_recording(PoolParts& pool, const void* p, PageEntry entry) noexcept;

}  // namespace tensorpool::kinds
