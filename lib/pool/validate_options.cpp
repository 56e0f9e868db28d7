#include "pool/validate_options.hpp"

namespace tensorpool {

void validate(const PoolOptions& options) {
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: pool '" + options.name + "': " + what);
    };
    const auto is = [](auto value) { return " is " + std::to_string(value); };
    if (options.max_capacity != 0 && options.initial_capacity > options.max_capacity) {
        refuse("initial_capacity" + is(options.initial_capacity) + " B, more than max_capacity, " +
               std::to_string(options.max_capacity) + " B");
    }
    if (options.max_allocation == 0) refuse("max_allocation is 0 B; expected at least 1 B");
    if (!(options.growth.factor >= 0.0 && options.growth.factor <= 1024.0)) {
        refuse("growth.factor" + is(options.growth.factor) + "; expected 0 to 1024");
    }
    if (!(options.growth.fraction >= 0.0 && options.growth.fraction <= 1.0)) {
        refuse("growth.fraction" + is(options.growth.fraction) + "; expected 0 to 1");
    }
    const unsigned nodes = platform::numa_node_count();
    if (options.numa.placement == NumaPolicy::Placement::prefer && options.numa.node >= nodes) {
        refuse("numa.node" + is(options.numa.node) + "; expected less than " +
               std::to_string(nodes) + ", the nodes of this machine");
    }
}

}  // namespace tensorpool
