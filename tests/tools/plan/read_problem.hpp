#pragma once

#include <string>
#include <string_view>

#include "plan/buffers.hpp"

namespace tensorpool::command::planning::testing {

/// Returns the error of `read` for a file named "a file" with this content; "" if there is none.
template <class Read>
std::string problem_of(Read read, std::string_view content) {
    try {
        read(content, "a file");
    } catch (const FileError& error) {
        return error.what();
    }
    return "";
}

}  // namespace tensorpool::command::planning::testing
