#pragma once

/// @file
/// What the answers to requests for data have in common.

#include <httplib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// Answers with an error.
void refuse(httplib::Response& response, int status, std::string_view message);

/// Returns the whole number that a parameter has, or nothing.
std::optional<std::uint64_t> number_in(const httplib::Request& request, const std::string& name);

/// Returns the requested process if there are statistics of it. Otherwise answers the request with
/// an error.
std::optional<std::uint64_t> find_process(const Watcher& watcher, const httplib::Request& request,
                                          httplib::Response& response);

}  // namespace tensorpool::command::serve
