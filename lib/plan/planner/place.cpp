#include "plan/planner/place.hpp"

#include <algorithm>

#include "plan/planner/windows_in_time.hpp"

namespace tensorpool::planner {

Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap) {
    TimeWindows windows(problem);
    Placing placing;
    Packing& packing = placing.packing;
    packing.offsets.resize(problem.buffers.size());
    for (const std::uint32_t index : order) {
        const Buffer& buffer = problem.buffers[index];
        const OffsetList& window = windows.around(buffer);
        placing.comparisons += window.size();
        const std::uint64_t offset = window.offset_for(buffer, gap);
        const std::uint64_t top = offset + buffer.bytes;
        windows.add({buffer.begin, buffer.end, offset, top, index});
        packing.offsets[index] = offset;
        packing.peak_bytes = std::max(packing.peak_bytes, top);
    }
    return placing;
}

}  // namespace tensorpool::planner
