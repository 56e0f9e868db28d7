#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/files/observed_file.hpp"
#include "statistics/reader/segment_problem.hpp"

namespace tensorpool::statistics {

/// A process's segment.
struct FoundSegment {
    std::uint64_t process = 0;
    platform::ObservedFile file;
    /// The descriptor by which the process holds it; 0 for one in the folder.
    std::uint64_t descriptor = 0;
    bool is_in_folder = false;
    /// It came from the process itself, and can be read when that has ended.
    bool is_handed_over = false;
    /// Whether the number is the one by which we see the process. In the folder there may be files
    /// of other containers.
    bool is_of_our_space = true;
    std::uint64_t start_ticks = 0;  // 0 for a process that we do not see
    std::string name;               // of the process
};

/// A segment, or why there is none.
struct Finding {
    std::optional<FoundSegment> segment;
    SegmentProblem problem = {AttachFailure::no_process, ""};
    /// Its file is there, and not yet what it will be.
    bool is_being_made = false;
};

/// Through /proc, or where that fails, in the folder. Throws std::bad_alloc.
Finding find_segment(std::uint64_t process);
/// Whether a process without a segment that could be found has one all the same: it closed the
/// descriptor. This takes as long as the process has many mappings.
bool has_closed_segment(std::uint64_t process);
/// In the folder of TENSORPOOL_STATISTICS_DIR only; what is found there is of a process that lives.
Finding find_in_folder(std::uint64_t process);
/// Behind a descriptor that came from the process itself, which may have ended.
Finding find_handed_over(platform::ObservedFile file);
/// That folder; "" where it is not set.
std::string segment_folder();
/// Whether a file in the folder is of a process that ended.
bool is_dead(std::uint64_t process, const platform::ObservedFile& file);

/// Whether the process still is what it was when its segment, which is `file` now, was found.
/// Otherwise why not.
std::optional<SegmentProblem> look_after(const FoundSegment& segment,
                                         const platform::ObservedFile& file);

}  // namespace tensorpool::statistics
