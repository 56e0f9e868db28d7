#pragma once

/// @file
/// The output of `ls`.

#include <tensorpool/statistics_reader.hpp>

#include "common/units.hpp"

namespace tensorpool::command {

struct ListedProcess {
    ObservedProcess process;
    std::optional<ProcessSnapshot> snapshot;  ///< nothing if it cannot be read
};

/// Returns a line for the titles, one for each process that can be read, then one for each that
/// cannot, with the reason.
std::string list_text(const std::vector<ListedProcess>& processes, Sizes sizes, std::size_t width);
/// Returns one JSON object, without a newline.
std::string list_json(const ListedProcess& process);

}  // namespace tensorpool::command
