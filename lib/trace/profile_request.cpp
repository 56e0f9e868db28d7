#include <tensorpool/profile_request.hpp>

#include <algorithm>

#include "trace/control_finder.hpp"

namespace tensorpool {

void request_profile_interval(std::uint64_t process, std::size_t bytes) {
    const trace::RingView view = trace::open_for_request(process, "to sample allocations");
    // One more, because 0 stands for no request.
    const std::uint64_t wanted = std::min<std::uint64_t>(bytes, UINT64_MAX - 1) + 1;
    view.control().profile_interval.store(wanted, std::memory_order_relaxed);
    trace::announce_request(view.control());
}

}  // namespace tensorpool
