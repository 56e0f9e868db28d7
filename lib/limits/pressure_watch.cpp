#include "limits/pressure_watch.hpp"

namespace tensorpool::limits {
void ask_under_pressure() noexcept {
    if (is_inside_holder()) return;
    const std::size_t wanted = the_watch.wanted_bytes(platform::monotonic_clock_ns());
    if (wanted != 0) ask_all_holders(wanted);
}

}  // namespace tensorpool::limits
