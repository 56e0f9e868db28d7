#pragma once

/// @file
/// The blocks of a recording, with facts about each besides its lifetime.

#include <algorithm>
#include <iterator>
#include <map>

#include <tensorpool/detail/buckets.hpp>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::trace {

/// The addresses [begin, end).
struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes() const noexcept { return end - begin; }
};

/// Returns the range of `bytes` bytes from `address` on, cut at the end of the address space.
inline Range range_of(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t max_bytes = UINT64_MAX - address;
    return {address, address + (bytes < max_bytes ? bytes : max_bytes)};
}

/// A set of addresses, as ranges that do not touch.
class RangeSet {
public:
    /// Adds a range. Returns whether it touched one that was there.
    bool add(Range range) {
        if (range.begin == range.end) return false;
        auto at = ends_.upper_bound(range.begin);
        if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
        // Most blocks reuse the addresses of earlier ones.
        if (at != ends_.end() && at->first <= range.begin && at->second >= range.end) return true;
        bool touched = false;
        while (at != ends_.end() && at->first <= range.end) {
            range.begin = std::min(range.begin, at->first);
            range.end = std::max(range.end, at->second);
            at = erase(at);
            touched = true;
        }
        insert(range);
        return touched;
    }
    void remove(Range range) {
        if (range.begin == range.end) return;
        auto at = ends_.upper_bound(range.begin);
        if (at != ends_.begin() && std::prev(at)->second > range.begin) --at;
        while (at != ends_.end() && at->first < range.end) {
            const auto [begin, end] = *at;
            at = erase(at);
            if (begin < range.begin) insert({begin, range.begin});
            if (end > range.end) insert({range.end, end});
        }
    }

    bool contains(std::uint64_t address) const {
        const auto after = ends_.upper_bound(address);
        return after != ends_.begin() && std::prev(after)->second > address;
    }
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::vector<Range> all() const {
        std::vector<Range> ranges;
        for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
        return ranges;
    }

private:
    using Ends = std::map<std::uint64_t, std::uint64_t>;  // by begin
    Ends::iterator erase(Ends::iterator at) {
        bytes_ -= at->second - at->first;
        return ends_.erase(at);
    }
    void insert(Range range) {
        ends_.emplace(range.begin, range.end);
        bytes_ += range.bytes();
    }

    Ends ends_;
    std::uint64_t bytes_ = 0;
};

struct BlockFacts {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t block_bytes = 0;  ///< its size in memory, including rounding
    std::uint32_t scope = none;     ///< source of the innermost scope open on the thread
    std::uint32_t stack = 0;        ///< stack of the allocating call; 0: not sampled
    std::uint32_t born = none;      ///< the call that allocated it, also after resizes
};

// A scope may end before one that began inside it. The search for it is limited, so that a hostile
// file cannot make it take forever.
inline constexpr std::ptrdiff_t max_depth_searched = 256;

/// Updates the open scopes of a thread, the innermost last.
inline void take(const Call& call, std::vector<std::uint32_t>& open) {
    if (call.action == TraceAction::scope_begin) open.push_back(call.source);
    if (call.action != TraceAction::scope_end) return;
    const auto end = open.rend() - open.rbegin() > max_depth_searched
                         ? open.rbegin() + max_depth_searched
                         : open.rend();
    const auto found = std::find(open.rbegin(), end, call.source);
    if (found != end) open.erase(std::next(found).base());
}

// The page size of the pool, independent of the system's page size.
inline constexpr std::uint64_t page_bytes = 4096;
// Larger alignments are served by whole pages.
inline constexpr std::uint64_t max_bucket_alignment = 2048;
// Above the limit of any pool. Much larger sizes would overflow 64 bits when rounded up.
inline constexpr std::uint64_t beyond_all_pools = std::uint64_t{1} << 60;

// The alignment that malloc requests from a pool with finer sizes.
inline constexpr unsigned malloc_alignment_log2 = 4;

inline std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) noexcept {
    return (bytes + step - 1) & ~(step - 1);
}

// Finer sizes: steps of 16 B up to 64 B, then four sizes for each doubling.
inline std::uint64_t finest_bytes(std::uint64_t bytes) noexcept {
    return round_up(bytes, bytes <= 64 ? 16 : std::bit_floor(bytes - 1) / 4);
}

// Large blocks: eight sizes for each doubling up to 1 MiB, thirty-two above.
inline std::uint64_t round_pages(std::uint64_t pages) noexcept {
    if (pages <= 16) return pages;
    const auto digits = static_cast<unsigned>(std::bit_width(pages - 1)) - (pages <= 256 ? 4U : 6U);
    return round_up(pages, std::uint64_t{1} << digits);
}

/// Returns the size of the block that a pool hands out for `bytes` bytes with an alignment of 2 to
/// the power of `alignment_log2`: that of a bucket up to 64 KiB, whole pages above.
inline std::uint64_t pool_block_bytes(std::uint64_t bytes, unsigned alignment_log2) noexcept {
    if (bytes > beyond_all_pools || alignment_log2 > 60) return bytes;
    const std::uint64_t alignment = std::uint64_t{1} << alignment_log2;
    const std::uint64_t wanted =
        alignment > detail::smallest_block_bytes ? std::max(bytes, alignment) : bytes;
    const bool aligned_in_bucket =
        alignment <= detail::smallest_block_bytes || wanted <= max_bucket_alignment;
    const unsigned bucket = detail::bucket_of(wanted);
    if (alignment_log2 == malloc_alignment_log2 && bucket < detail::bucket_count)
        return finest_bytes(bytes);
    if (aligned_in_bucket && bucket < detail::bucket_count) return detail::bucket_bytes(bucket);
    return round_pages((bytes + page_bytes - 1) / page_bytes) * page_bytes;
}

/// All blocks in the order of their beginnings. Takes about 70 bytes for each block. The recording
/// must outlive it.
class History {
public:
    explicit History(const Recording& recording)
        : recording_(recording),
          order_(lifetimes_of(recording)),
          facts_(lifetimes().size()),
          begun_by_(recording.calls.size(), Lifetime::none) {
        for (std::uint32_t i = 0; i < lifetimes().size(); ++i) {
            if (lifetimes()[i].begin != Lifetime::none) begun_by_[lifetimes()[i].begin] = i;
        }
        find_scopes();
        pass_on_origins();
        measure_blocks();
        begun_by_ = {};
    }

    const Recording& recording() const noexcept { return recording_; }
    const LifetimeOrder& order() const noexcept { return order_; }
    const std::vector<Lifetime>& lifetimes() const noexcept { return order_.lifetimes(); }
    const BlockFacts& facts(std::size_t lifetime) const noexcept { return facts_[lifetime]; }
    /// Returns the addresses of a block, including rounding.
    Range range(std::size_t lifetime) const noexcept {
        return range_of(lifetimes()[lifetime].address, facts_[lifetime].block_bytes);
    }
    /// Returns the time of a call; for `Lifetime::none` that of the first call.
    std::uint64_t time_of(std::uint32_t call) const noexcept {
        const auto& calls = recording_.calls;
        if (calls.empty()) return 0;
        return calls[call == Lifetime::none ? 0 : call].time_ns;
    }
    std::uint64_t first_ns() const noexcept { return time_of(Lifetime::none); }
    std::uint64_t last_ns() const noexcept {
        return recording_.calls.empty() ? 0 : recording_.calls.back().time_ns;
    }
    bool is_alive(const Lifetime& lifetime, std::uint32_t call) const noexcept {
        return (lifetime.begin == Lifetime::none || lifetime.begin <= call) &&
               (lifetime.end == Lifetime::none || lifetime.end > call);
    }

    template <class Begin, class End>
    void walk(Begin&& begin, End&& end) const {
        order_.walk(begin, end);
    }

private:
    void find_scopes() {
        std::vector<std::vector<std::uint32_t>> open(recording_.threads.size());
        for (std::uint32_t call = 0; call < recording_.calls.size(); ++call) {
            const std::vector<std::uint32_t>& scopes = open[recording_.calls[call].thread];
            take(recording_.calls[call], open[recording_.calls[call].thread]);
            const std::uint32_t lifetime = begun_by_[call];
            if (lifetime == Lifetime::none) continue;
            if (!scopes.empty()) facts_[lifetime].scope = scopes.back();
            facts_[lifetime].stack = recording_.calls[call].stack;
            facts_[lifetime].born = call;
        }
    }
    // A block that was resized in place still belongs to its first caller.
    void pass_on_origins() {
        for (const std::uint32_t ended : order_.by_end()) {
            const std::uint32_t next = begun_by_[lifetimes()[ended].end];
            if (next == Lifetime::none || !lifetimes()[next].continues) continue;
            if (lifetimes()[next].address != lifetimes()[ended].address) continue;
            facts_[next].scope = facts_[ended].scope;
            facts_[next].stack = facts_[ended].stack;
            facts_[next].born = facts_[ended].born;
        }
    }
    // Goes backwards, because only the call that ends a block has its size.
    void measure_blocks() {
        for (std::size_t i = lifetimes().size(); i-- > 0;)
            facts_[i].block_bytes = block_bytes_of(lifetimes()[i]);
    }
    std::uint64_t block_bytes_of(const Lifetime& lifetime) const {
        using enum TraceAction;
        if (lifetime.end != Lifetime::none) {
            const trace::Call& end = recording_.calls[lifetime.end];
            const std::uint32_t next = begun_by_[lifetime.end];
            const bool goes_on = next != Lifetime::none && lifetimes()[next].continues &&
                                 lifetimes()[next].address == lifetime.address;
            if (goes_on) return std::max(lifetime.bytes, facts_[next].block_bytes);
            const bool has_size = end.action == deallocate && end.address == lifetime.address;
            if (has_size && end.bytes >= lifetime.bytes) return end.bytes;
        }
        const bool of_pool = recording_.sources[lifetime.source].kind == TraceSource::pool;
        if (!of_pool || lifetime.begin == Lifetime::none) return lifetime.bytes;
        return pool_block_bytes(lifetime.bytes, recording_.calls[lifetime.begin].alignment_log2);
    }

    const Recording& recording_;
    LifetimeOrder order_;
    std::vector<BlockFacts> facts_;
    std::vector<std::uint32_t> begun_by_;  // for each call: the block that it allocated
};

}  // namespace tensorpool::command::trace
