#pragma once

#include <cstdint>
#include <string>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::trace {

/// A file that is not a trace, or is damaged. The message names the file, the byte offset, what was
/// found and what was expected.
class TraceError : public CommandError {
public:
    TraceError(const std::string& path, std::uint64_t offset, const std::string& what)
        : CommandError(finding,
                       printable(path) + ": at byte " + std::to_string(offset) + ": " + what) {}
};

}  // namespace tensorpool::command::trace
