#pragma once

/// @file
/// The blocks of a recording, with facts about each besides its lifetime.

#include <map>

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
    bool add(Range range);
    void remove(Range range);

    bool contains(std::uint64_t address) const;
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::vector<Range> all() const;

private:
    using Ends = std::map<std::uint64_t, std::uint64_t>;  // by begin
    Ends::iterator erase(Ends::iterator at);
    void insert(Range range);

    Ends ends_;
    std::uint64_t bytes_ = 0;
};

/// Returns the size of the block that a pool hands out for `bytes` bytes with an alignment of 2 to
/// the power of `alignment_log2`: that of a bucket up to 64 KiB, whole pages above.
std::uint64_t pool_block_bytes(std::uint64_t bytes, unsigned alignment_log2) noexcept;

struct BlockFacts {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t block_bytes = 0;  ///< its size in memory, including rounding
    std::uint32_t scope = none;     ///< source of the innermost scope open on the thread
    std::uint32_t stack = 0;        ///< stack of the allocating call; 0: not sampled
    std::uint32_t born = none;      ///< the call that allocated it, also after resizes
};

/// All blocks in the order of their beginnings. Takes about 70 bytes for each block. The recording
/// must outlive it.
class History {
public:
    explicit History(const Recording& recording);

    const Recording& recording() const noexcept { return recording_; }
    const LifetimeOrder& order() const noexcept { return order_; }
    const std::vector<Lifetime>& lifetimes() const noexcept { return order_.lifetimes(); }
    const BlockFacts& facts(std::size_t lifetime) const noexcept { return facts_[lifetime]; }
    /// Returns the time of a call; for `Lifetime::none` that of the first call.
    std::uint64_t time_of(std::uint32_t call) const noexcept;
    std::uint64_t first_ns() const noexcept { return time_of(Lifetime::none); }
    std::uint64_t last_ns() const noexcept;
    bool is_alive(const Lifetime& lifetime, std::uint32_t call) const noexcept {
        return (lifetime.begin == Lifetime::none || lifetime.begin <= call) &&
               (lifetime.end == Lifetime::none || lifetime.end > call);
    }

    /// Walks over the blocks in the order of time; see LifetimeOrder.
    template <class Begin, class End>
    void walk(Begin&& begin, End&& end) const {
        order_.walk(begin, end);
    }

private:
    void find_scopes();
    void pass_on_origins();
    void measure_blocks();
    std::uint64_t block_bytes_of(const Lifetime& lifetime) const;

    const Recording& recording_;
    LifetimeOrder order_;
    std::vector<BlockFacts> facts_;
    std::vector<std::uint32_t> begun_by_;  // for each call: the block that it allocated
};

}  // namespace tensorpool::command::trace
