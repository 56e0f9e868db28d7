#pragma once

#include <algorithm>

#include "common/cells.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::profile {

/// Returns the line of the program as the last cell of a row. A longer one would not fit the table.
inline Cell line_cell(const NamedProfile& named, const ProfileSite& site) {
    constexpr std::size_t max_columns = 200;
    const std::string line = printable(line_of(named, site));
    return {fit(line, std::min(columns_of(line), max_columns))};
}

}  // namespace tensorpool::command::profile
