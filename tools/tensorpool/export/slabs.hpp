#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/trace/ranges_used.hpp"

namespace tensorpool::command::export_ {

using trace::Range;

/// The slabs of a device's allocator over time. Slabs that touch are merged.
class Slabs {
public:
    void add(Range range);
    void remove(Range range);

    /// The present slabs, in order of address.
    std::vector<Range> all() const;
    /// Whether the address has lain in a slab at any time.
    bool has_known(std::uint64_t address) const;
    /// Whether a slab was extended at its end or its beginning.
    bool have_grown() const noexcept { return have_grown_; }

private:
    using Ends = std::map<std::uint64_t, std::uint64_t>;  // by begin
    static bool join(Ends& ends, Range range);

    Ends now_;
    Ends ever_;
    bool have_grown_ = false;
};

}  // namespace tensorpool::command::export_
