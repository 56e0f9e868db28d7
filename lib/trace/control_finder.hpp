#pragma once

#include <cstdint>
#include <string>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"
#include "trace/ring_view.hpp"

namespace tensorpool::trace {

/// Throws an AttachError that names the process. 0 stands for a process without a known number.
[[noreturn]] void fail_to_attach(std::uint64_t process, AttachFailure failure,
                                 const std::string& what);

/// Finds the control of a process. `what` names the request for messages, such as "to record".
/// Throws AttachError if there is no control or the process cannot be examined.
platform::ObservedFile find_control(std::uint64_t process, const char* what);

/// Opens the control of a process for a request other than to record. Throws AttachError, as above.
RingView open_for_request(std::uint64_t process, const char* what);
/// Announces a request whose words are stored in the control.
void announce_request(Control& control) noexcept;

}  // namespace tensorpool::trace
