#include "replay/floor_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/settings.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

/// As malloc promises it.
constexpr std::uint64_t min_alignment = 16;

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

std::uint64_t FloorPlaces::allocate(std::uint64_t bytes, unsigned alignment_log2) {
    const std::uint64_t alignment = std::max(min_alignment, std::uint64_t{1} << alignment_log2);
    const std::uint64_t needed = align_up(bytes, min_alignment);
    // The smallest that is large enough; if that does not fit by its alignment, one that must.
    for (const std::uint64_t least : {needed, needed + alignment - min_alignment}) {
        const auto found = by_size_.lower_bound({least, 0});
        if (found == by_size_.end()) break;
        const auto [size, begin] = *found;
        const std::uint64_t place = align_up(begin, alignment);
        if (place + needed <= begin + size) return cut(begin, size, place, needed);
    }
    // The last free piece may reach to the end.
    std::uint64_t begin = end_;
    if (!free_.empty()) {
        const auto& [last, size] = *free_.rbegin();
        if (last + size == end_) begin = last;
    }
    const std::uint64_t old_end = end_;
    const std::uint64_t place = align_up(begin, alignment);
    if (place + needed > Step::max_bytes) {
        throw CommandError(finding, fmt::format("the trace's blocks reach over {} bytes by their "
                                                "alignments, expected at most {}",
                                                place + needed, Step::max_bytes));
    }
    end_ = std::max(end_, place + needed);
    if (begin < old_end) remove_free(begin, old_end - begin);
    free_.emplace(begin, end_ - begin);
    by_size_.emplace(end_ - begin, begin);
    return cut(begin, end_ - begin, place, needed);
}

std::uint64_t FloorPlaces::cut(std::uint64_t begin, std::uint64_t bytes, std::uint64_t place,
                               std::uint64_t needed) {
    remove_free(begin, bytes);
    if (place > begin) add_free(begin, place - begin);
    const std::uint64_t rest = begin + bytes - (place + needed);
    if (rest != 0) add_free(place + needed, rest);
    used_.emplace(place, needed);
    return place;
}

void FloorPlaces::deallocate(std::uint64_t place) {
    const auto used = used_.find(place);
    add_free(place, used->second);
    used_.erase(used);
}

void FloorPlaces::add_free(std::uint64_t begin, std::uint64_t bytes) {
    const auto next = free_.lower_bound(begin);
    if (next != free_.end() && begin + bytes == next->first) {
        const std::uint64_t more = next->second;
        remove_free(begin + bytes, more);
        bytes += more;
    }
    auto before = free_.lower_bound(begin);
    if (before != free_.begin()) {
        before = std::prev(before);
        const auto [first, less] = *before;
        if (first + less == begin) {
            remove_free(first, less);
            begin = first;
            bytes += less;
        }
    }
    free_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
}

void FloorPlaces::remove_free(std::uint64_t begin, std::uint64_t bytes) {
    free_.erase(begin);
    by_size_.erase({bytes, begin});
}

}  // namespace tensorpool::command::replay
