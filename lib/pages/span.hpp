#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>

#include <tensorpool/detail/allocated_by.hpp>

#include "pages/page_map.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

/// How a block of a hardened pool was allocated, beside its size. A free that states something else
/// is a misuse. A default-constructed one has the default alignment of a pool's blocks.
class BlockOrigin {
public:
    static constexpr std::size_t default_alignment = 64;

    constexpr BlockOrigin() noexcept = default;
    /// REQUIRES: `alignment` is a power of two. Those up to the default one are not distinguished.
    explicit constexpr BlockOrigin(std::size_t alignment,
                                   detail::AllocatedBy by = detail::AllocatedBy::pool) noexcept
        : packed_(static_cast<std::uint8_t>(
              std::countr_zero(std::max(alignment, default_alignment) / default_alignment) |
              static_cast<int>(by) << by_shift)) {}

    constexpr std::size_t alignment() const noexcept {
        return default_alignment << (packed_ & ((1 << by_shift) - 1));
    }
    constexpr detail::AllocatedBy by() const noexcept {
        return static_cast<detail::AllocatedBy>(packed_ >> by_shift);
    }

private:
    static constexpr int by_shift = 6;

    std::uint8_t packed_ = 0;  // the doublings of the default alignment; above them, `by`
};
static_assert(sizeof(BlockOrigin) == 1);

/// The states of the blocks of one bucket's span, in pools with checks, and the marks of marked
/// blocks. They lie out of band, in memory that lives as long as the pool and only ever holds
/// states of one bucket, so the state for any address may be read without a lock. The states follow
/// this head; 0 means not in use. In hardened pools, the origins of the blocks follow the states.
struct alignas(16) BlockStates {
    /// There is one state for each block, a wide one if it also holds the requested bytes.
    using State = std::atomic<std::uint8_t>;
    using WideState = std::atomic<std::uint16_t>;
    using Origin = std::atomic<BlockOrigin>;
    /// Null while the block is not in use, except for blocks that a thread holds ready for its
    /// scope (blocks/magazine_pair.hpp). Relaxed: a mark belongs to the thread that holds the
    /// block, or that may take it out of a magazine; look-ups of any address may read it.
    using Mark = std::atomic<base::BlockMark*>;

    /// The address of the span's first block.
    std::atomic<const char*> first_block = nullptr;
    /// The next in the list of unused states. Guarded by the bucket's lock.
    BlockStates* next_free = nullptr;
    /// The marks of the blocks, in a span of marked blocks; set once.
    Mark* marks = nullptr;

    State& state(std::uint64_t index) noexcept { return reinterpret_cast<State*>(this + 1)[index]; }
    WideState& wide_state(std::uint64_t index) noexcept {
        return reinterpret_cast<WideState*>(this + 1)[index];
    }
    /// The origin of one of `blocks` blocks. It belongs to the thread that allocates the block or
    /// that ended its use.
    Origin& origin(std::uint64_t index, unsigned blocks) noexcept {
        return reinterpret_cast<Origin*>(&wide_state(blocks))[index];
    }
};

/// Whether the memory of a freed span was filled with zeros. A program that writes into freed
/// memory can change it, so only a hardened bucket relies on it, which checks for such writes.
enum class Zeroed : bool { no, yes };

/// The record of a run of pages: a bucket's span, a large block, or a free extent. Records lie out
/// of band. The lock of the heap's shard guards the record of an extent. The lock of the bucket's
/// shard guards the second part of a bucket's span. The record of a large block belongs to the
/// block's holder.
struct alignas(64) Span
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    PageNumber first_page = 0;
    PageCount pages = 0;
    PageKind kind = PageKind::none;
    /// The memory reads as zeros: it was not used since it was committed.
    bool clean = false;
    /// The memory was filled with zeros when it was last freed (see `Zeroed`).
    bool zeroed = false;
    /// Huge pages were requested.
    bool huge = false;
    /// For a free large block in a cache: the retention period in which it was freed.
    std::uint32_t period = 0;
    /// For a large block: the requested bytes; with checks, 0 if it is not in use, and `nothing` if
    /// 0 bytes were requested.
    /// Relaxed: its holder writes it while look-ups of any address may read it.
    std::atomic<std::uint64_t> requested_bytes = 0;
    // For a span with marked blocks it is the number of the bucket (`marked_bucket`).
    static constexpr std::uint64_t nothing = UINT64_MAX;

    // A bucket's span. Blocks [0, carved) were taken at least once. Of these, `home` blocks are
    // free and have their bit set in `home_bits`; the others are in use, in a magazine or in the
    // depot. Blocks from `carved` on were never used. For a marked large block, the first word of
    // `home_bits` is the address of the mark.
    std::uint16_t blocks = 0;
    std::uint16_t carved = 0;
    std::uint16_t home = 0;
    bool listed = false;
    std::uint8_t fullness = 0;  // the list of its bucket's shard, for a listed span
    std::uint8_t shard = 0;     // of its bucket; fixed while the span belongs to one
    /// For a free run: its memory takes pages of the system although it was not used.
    bool touched = false;
    /// For a large block in use: it has a mark, so its free has more to do than to free it.
    bool is_marked = false;
    /// For a large block of a hardened pool.
    std::atomic<BlockOrigin> origin = BlockOrigin();
    /// The pages of the system that hold free blocks of the bucket only, and how many of them take
    /// no memory.
    std::uint16_t free_pages = 0;
    std::uint16_t untouched_pages = 0;
    /// With checks: the states of the blocks; null while the span does not belong to a bucket. Also
    /// read without the lock.
    std::atomic<BlockStates*> states = nullptr;
    static constexpr unsigned max_blocks = 1024;
    std::uint64_t home_bits[max_blocks / 64] = {};

    /// Returns the mark of a large block in use; nullptr if there is none.
    base::BlockMark* mark() const noexcept {
        return is_marked ? reinterpret_cast<base::BlockMark*>(home_bits[0]) : nullptr;
    }
    /// Sets or replaces the mark of a large block in use.
    void set_mark(base::BlockMark& mark) noexcept {
        home_bits[0] = reinterpret_cast<std::uintptr_t>(&mark);
        is_marked = true;
    }
    /// Removes the mark of a large block in use and returns it. REQUIRES: it is marked.
    base::BlockMark& take_mark() noexcept {
        is_marked = false;
        return *reinterpret_cast<base::BlockMark*>(home_bits[0]);
    }
    /// The bucket of a span with marked blocks.
    unsigned marked_bucket() const noexcept {
        return static_cast<unsigned>(requested_bytes.load(std::memory_order_relaxed));
    }
    void set_marked_bucket(unsigned bucket) noexcept {
        requested_bytes.store(bucket, std::memory_order_relaxed);
    }

    PageNumber end_page() const noexcept { return first_page + pages; }
    std::size_t bytes() const noexcept { return std::size_t{pages} << page_shift; }
    /// Whether the memory takes no pages of the system.
    bool is_untouched() const noexcept { return clean && !touched; }
    /// For a free run: the pages at its end that take no pages of the system. New memory lies
    /// behind what was used before, so joining both keeps their number. Stored in `home_bits`.
    PageCount untouched_end() const noexcept {
        return is_untouched() ? pages : static_cast<PageCount>(home_bits[0]);
    }
    void set_untouched_end(PageCount count) noexcept { home_bits[0] = count; }
    bool holds_zeros() const noexcept { return clean || zeroed; }
    /// Makes the content of this run that of both runs, which are about to be joined.
    void join_content(const Span& other) noexcept {
        zeroed = holds_zeros() && other.holds_zeros();
        clean = clean && other.clean;
        touched = touched || other.touched;
        huge = huge && other.huge;
    }
    /// Makes the content of this run that of the run that it was cut from.
    void take_content(const Span& whole) noexcept {
        clean = whole.clean;
        touched = whole.touched;
        zeroed = whole.zeroed;
        huge = whole.huge;
    }
    /// Returns whether the run shares no page of the system with its neighbours. A shared page is
    /// neither dropped nor moved.
    bool is_of_whole_pages() const noexcept {
        return (std::size_t{first_page | pages} << page_shift) % platform::page_bytes() == 0;
    }
};

static_assert(sizeof(Span) <= 3 * 64, "each run of pages holds one");

using SpanList = boost::intrusive::list<Span, boost::intrusive::constant_time_size<false>>;

/// What may not be accessed beside a guarded block or span, in pages: one page of the system.
inline PageCount guard_pages() noexcept {
    return static_cast<PageCount>(std::max(page_bytes, platform::page_bytes()) / page_bytes);
}

}  // namespace tensorpool::pages
