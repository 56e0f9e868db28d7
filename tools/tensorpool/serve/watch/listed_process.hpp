#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::command::serve {

/// A process that the page may choose.
struct ListedProcess {
    std::uint64_t process = 0;
    std::string name;
    bool readable = false;
    std::string problem;  ///< why it cannot be read; "" when it can
    bool ended = false;   ///< what is known of it is its past

    bool operator==(const ListedProcess&) const = default;
};

}  // namespace tensorpool::command::serve
