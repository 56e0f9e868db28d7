#pragma once

#include <string>
#include <string_view>

#include "plan/fields.hpp"

namespace tensorpool::command::planning::testing {

/// What `read` says of a file called "a file" with this content; "" where it takes it.
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
