#include "pool/validate_options.hpp"

#include "base/validate_growth.hpp"

namespace tensorpool {

void validate(const PoolOptions& options) {
    const std::string owner = "pool '" + options.name + "'";
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: " + owner + ": " + what);
    };
    const auto is = [](auto value) { return " is " + std::to_string(value); };
    if (options.max_capacity != 0 && options.initial_capacity > options.max_capacity) {
        refuse("initial_capacity" + is(options.initial_capacity) + " B, more than max_capacity, " +
               std::to_string(options.max_capacity) + " B");
    }
    if (options.max_allocation == 0) refuse("max_allocation is 0 B; expected at least 1 B");
    validate(options.growth, owner);
    if (!(options.guard_share >= 0 && options.guard_share <= 1)) {
        refuse("guard_share" + is(options.guard_share) + "; expected a number from 0 to 1");
    }
    if (options.numa.placement != NumaPolicy::Placement::prefer) return;
    const unsigned nodes = platform::numa_node_count();  // reads a file of the system
    if (options.numa.node >= nodes) {
        refuse("numa.node" + is(options.numa.node) + "; expected less than " +
               std::to_string(nodes) + ", the nodes of this machine");
    }
}

}  // namespace tensorpool
