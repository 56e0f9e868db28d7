#pragma once

#include <tensorpool/process_snapshot.hpp>
#include <vector>

namespace tensorpool::testing {

/// Processes with a figure everywhere: pools with a limit and without, scopes, an arena, a scratch.
/// The names of the first are plain, those of the others as hard as names can be.
std::vector<ProcessSnapshot> made_up_snapshots();

/// A name with everything that is special in a label: quotes, a backslash, an end of line.
inline constexpr const char* hard_name = "a\"b\\c\nd{e=\"f\"} # g";
/// Ends within a character of UTF-8, as a name cut to 47 bytes may.
inline constexpr const char* cut_name = "B\xc3\xbcro\xc3";

}  // namespace tensorpool::testing
