#include "arena/validate_options.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "base/validate_growth.hpp"

namespace tensorpool::arena {

void validate(const ArenaOptions& options) {
    const std::string owner = "arena '" + options.name + "'";
    if (!std::has_single_bit(options.alignment)) {
        throw std::invalid_argument("tensorpool: " + owner + ": alignment is " +
                                    std::to_string(options.alignment) +
                                    " B; expected a power of two");
    }
    if (options.max_allocation == 0) {
        throw std::invalid_argument("tensorpool: " + owner +
                                    ": max_allocation is 0 B; expected at least 1 B");
    }
    tensorpool::validate(options.growth, owner);
}

}  // namespace tensorpool::arena
