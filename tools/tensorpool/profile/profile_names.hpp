#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "inspect/symbols/frame_names.hpp"
#include "profile/named_profile.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::profile {

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
    inspect::FrameNames names_{recording_};
};

}  // namespace tensorpool::command::profile
