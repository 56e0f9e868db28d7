#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::command::serve {

/// A process that can be chosen on the page.
struct ListedProcess {
    std::uint64_t process = 0;
    std::string name;
    bool readable = false;
    std::string problem;  ///< why it cannot be read; "" if it can
    bool ended = false;   ///< only its history is available

    bool operator==(const ListedProcess&) const = default;
};

}  // namespace tensorpool::command::serve
