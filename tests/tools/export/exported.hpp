#pragma once

#include <functional>
#include <string>

#include "export/formats.hpp"

namespace tensorpool::command::export_::testing {

/// What `write` wrote.
std::string written(const std::function<void(WrittenFile&)>& write);
/// What a program printed, and its exit code, -1 where a signal ended it.
struct Printed {
    int code = -1;
    std::string text;
};
Printed printed_by(const std::string& command_line);

/// What check_snapshot.py says of a snapshot; what it found wrong, as a test's failure. "" then.
std::string checked_snapshot(const std::string& pickle);

}  // namespace tensorpool::command::export_::testing
