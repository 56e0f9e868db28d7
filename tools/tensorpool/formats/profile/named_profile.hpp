#pragma once

#include <algorithm>

#include <tensorpool/heap_profile.hpp>

#include "common/cells.hpp"
#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::profile {

/// Adds all values of a site to another.
void add(ProfileSite& to, const ProfileSite& site);
/// Removes the frames that no site uses, and the indices beyond the frames.
void drop_unused_frames(HeapProfile& profile);

/// The value of a site that sorts the sites and that exports contain.
enum class Value { live, peak, allocated };
std::string_view name_of(Value value) noexcept;
std::uint64_t bytes_of(const ProfileSite& site, Value value) noexcept;
/// Returns the number of blocks: at least 1 if the site has bytes, although it is an estimate. Some
/// readers reject bytes without blocks.
std::uint64_t blocks_of(const ProfileSite& site, Value value) noexcept;

struct NamedProfile {
    /// The sites with the most bytes come first. Each stack has its outermost call first, without
    /// the calls of tensorpool itself and without indices beyond `frames`.
    HeapProfile profile;
    std::vector<symbols::FrameName> frames;  ///< the names of `profile.frames`
    std::vector<std::string> problems;       ///< why names are missing
    Value value = Value::live;

    std::uint64_t total(Value of) const noexcept;
};

/// Finds the names of the frames, and sorts the sites by `value`.
NamedProfile name_frames(HeapProfile profile, Value value);

/// Returns the stack of a site as texts such as "function at file:line", outermost call first;
/// "[other stacks]" if the site has none.
std::vector<std::string> stack_of(const NamedProfile& named, const ProfileSite& site);
/// Returns the line of the program that allocates.
std::string line_of(const NamedProfile& named, const ProfileSite& site);

/// Returns a profile with one site for each such line: the sum of its sites, with the stack of the
/// largest.
NamedProfile sum_by_line(NamedProfile named);

/// Names the frames of successive profiles of one process. A frame is looked up only once, because
/// reading the symbols of a large library takes seconds. Used by one thread at a time.
class ProfileNames {
public:
    ProfileNames() = default;
    ProfileNames(const ProfileNames&) = delete;
    ProfileNames& operator=(const ProfileNames&) = delete;

    /// Finds the names of the frames, and sorts the sites by `value`.
    NamedProfile name(HeapProfile profile, Value value);

private:
    std::uint32_t module_of(const std::string& path);

    trace::Recording recording_;  ///< has only modules
    std::unordered_map<std::string, std::uint32_t> modules_;
    symbols::FrameNames names_{recording_};
};

/// Returns the calls of a site for a person to read, innermost first, as in a debugger. They are
/// safe to print.
///
/// In a Python program, those of Python are left, and successive calls of libraries below them are
/// one text. In other programs, calls outside of `main` are left out.
std::vector<std::string> short_stack_of(const NamedProfile& named, const ProfileSite& site);

/// Returns the line of the program as the last cell of a row. A longer one would not fit the table.
inline Cell line_cell(const NamedProfile& named, const ProfileSite& site) {
    constexpr std::size_t max_columns = 200;
    const std::string line = printable(line_of(named, site));
    return {fit(line, std::min(columns_of(line), max_columns))};
}

}  // namespace tensorpool::command::profile
