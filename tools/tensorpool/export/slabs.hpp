#pragma once

#include "formats/trace/ranges.hpp"

namespace tensorpool::command::export_ {

using trace::Range;

/// The slabs of a device's allocator over time. Slabs that touch are merged.
class Slabs {
public:
    void add(Range range) {
        ever_.add(range);
        have_grown_ = now_.add(range) || have_grown_;
    }
    void remove(Range range) { now_.remove(range); }

    /// The present slabs, in order of address.
    std::vector<Range> all() const { return now_.all(); }
    /// Whether the address has lain in a slab at any time.
    bool has_known(std::uint64_t address) const { return ever_.contains(address); }
    /// Whether a slab was extended at its end or its beginning.
    bool have_grown() const noexcept { return have_grown_; }

private:
    trace::RangeSet now_;
    trace::RangeSet ever_;
    bool have_grown_ = false;
};

}  // namespace tensorpool::command::export_
