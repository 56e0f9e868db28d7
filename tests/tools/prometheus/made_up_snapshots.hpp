#pragma once

#include <tensorpool/process_snapshot.hpp>
#include <vector>

namespace tensorpool::testing {

/// Processes with a value for every metric: pools with and without a limit, scopes, an arena, a
/// scratch. The names of the first process are plain; those of the others contain special
/// characters.
std::vector<ProcessSnapshot> made_up_snapshots();

/// A name with all characters that are special in a label: quotes, a backslash, a newline.
inline constexpr const char* hard_name = "a\"b\\c\nd{e=\"f\"} # g";
/// Ends within a UTF-8 character, as a name cut to 47 bytes may.
inline constexpr const char* cut_name = "B\xc3\xbcro\xc3";

}  // namespace tensorpool::testing
