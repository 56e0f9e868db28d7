#include "export/segments.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "formats/trace/ranges_used.hpp"

namespace tensorpool::command::export_ {
namespace {

using trace::Range;
using trace::RangesUsed;

constexpr std::uint64_t growth_bytes = std::uint64_t{4} << 20;

Range range_of_block(const History& history, std::size_t lifetime) {
    return trace::range_of(history.lifetimes()[lifetime].address,
                             history.facts(lifetime).block_bytes);
}

/// The ranges used by each source. There are few sources.
std::map<std::uint32_t, RangesUsed> used_by(const History& history,
                                            std::span<const std::uint32_t> lifetimes, Moment moment,
                                            const Slabs& slabs) {
    std::map<std::uint32_t, RangesUsed> used;
    for (const std::uint32_t i : lifetimes) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (!moment.has_begun(lifetime) || slabs.has_known(lifetime.address)) continue;
        used[lifetime.source].add(range_of_block(history, i));
    }
    return used;
}

struct Piece {
    Range range;
    std::uint32_t source;
    bool is_slab = false;
};

std::vector<Piece> pieces_of(const std::map<std::uint32_t, RangesUsed>& used,
                             const std::vector<Range>& slabs, std::uint32_t of_slabs) {
    std::vector<Piece> pieces;
    for (const auto& [source, ranges] : used) {
        for (const Range range : ranges.all()) pieces.push_back({range, source, false});
    }
    for (const Range range : slabs) pieces.push_back({range, of_slabs, true});
    std::ranges::stable_sort(pieces, {}, [](const Piece& piece) { return piece.range.begin; });
    return pieces;
}

std::vector<Segment> join(const std::vector<Piece>& pieces) {
    std::vector<Segment> segments;
    bool last_is_slab = false;
    for (Piece piece : pieces) {
        Segment* const last = segments.empty() ? nullptr : &segments.back();
        const std::uint64_t taken = last == nullptr ? 0 : last->address + last->bytes;
        piece.range.begin = std::max(piece.range.begin, taken);
        if (piece.range.begin >= piece.range.end) continue;
        if (last != nullptr && last->source == piece.source && !last_is_slab && !piece.is_slab &&
            piece.range.begin - taken < growth_bytes) {
            last->bytes = piece.range.end - last->address;
        } else {
            segments.push_back({piece.range.begin, piece.range.bytes(), piece.source, 0, {}});
            last_is_slab = piece.is_slab;
        }
    }
    return segments;
}

/// Fills one segment after the other with blocks in order of address.
class Filling {
public:
    explicit Filling(std::vector<Segment>& segments) : segments_(segments) {}

    void add(Range range, std::uint64_t requested_bytes, std::uint32_t stack,
             std::uint16_t stream = 0, bool is_deferred = false) {
        while (now_ < segments_.size() && end_of(now_) <= range.begin) end_segment();
        if (now_ == segments_.size()) return;
        const std::uint64_t begin = std::max(range.begin, filled());
        const std::uint64_t end = std::min(range.end, end_of(now_));
        if (begin >= end) return;
        leave_free_up_to(begin);
        if (!std::exchange(has_stream_, true)) segments_[now_].stream = stream;
        segments_[now_].blocks.push_back(
            {begin, end - begin, std::min(requested_bytes, end - begin), stack, true, is_deferred});
    }
    void finish() {
        while (now_ < segments_.size()) end_segment();
    }

private:
    std::uint64_t end_of(std::size_t segment) const {
        return segments_[segment].address + segments_[segment].bytes;
    }
    std::uint64_t filled() const {
        const Segment& segment = segments_[now_];
        if (segment.blocks.empty()) return segment.address;
        return segment.blocks.back().address + segment.blocks.back().bytes;
    }
    void leave_free_up_to(std::uint64_t address) {
        const std::uint64_t begin = filled();
        if (begin < address)
            segments_[now_].blocks.push_back({begin, address - begin, 0, 0, false, false});
    }
    void end_segment() {
        leave_free_up_to(end_of(now_));
        has_stream_ = false;
        ++now_;
    }

    std::vector<Segment>& segments_;
    std::size_t now_ = 0;
    bool has_stream_ = false;  // whether the segment has the stream of its first block
};

}  // namespace

std::vector<Segment> segments_of(const History& history, std::span<const std::uint32_t> lifetimes,
                                 Moment moment, const Slabs& slabs, std::uint32_t source) {
    std::vector<Segment> segments =
        join(pieces_of(used_by(history, lifetimes, moment, slabs), slabs.all(), source));
    std::vector<std::size_t> alive;
    for (const std::uint32_t i : lifetimes) {
        if (moment.is_alive(history.lifetimes()[i])) alive.push_back(i);
    }
    std::ranges::stable_sort(alive, {},
                             [&](std::size_t i) { return history.lifetimes()[i].address; });
    Filling filling(segments);
    for (const std::size_t i : alive) {
        const Lifetime& lifetime = history.lifetimes()[i];
        filling.add(range_of_block(history, i), lifetime.bytes, history.facts(i).stack,
                    lifetime.stream, moment.is_deferred(lifetime));
    }
    filling.finish();
    return segments;
}

}  // namespace tensorpool::command::export_
