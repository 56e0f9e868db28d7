#pragma once

#include <cstdint>
#include <string>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"

namespace tensorpool::trace {

/// Throws an AttachError that names the process. 0 stands for a process without a known number.
[[noreturn]] void fail_to_attach(std::uint64_t process, AttachFailure failure,
                                 const std::string& what);

/// Finds the control of a process. `what` names the request for messages, such as "to record".
/// Throws AttachError if there is no control or the process cannot be examined.
platform::ObservedFile find_control(std::uint64_t process, const char* what);

}  // namespace tensorpool::trace
