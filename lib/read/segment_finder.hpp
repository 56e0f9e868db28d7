#pragma once

#include "read/segment_problem.hpp"

namespace tensorpool::read {

/// The segment of a process.
struct FoundSegment {
    std::uint64_t process = 0;
    platform::ObservedFile file;
    /// The descriptor under which the process holds it; 0 for a segment in the folder.
    std::uint64_t descriptor = 0;
    bool is_in_folder = false;
    /// Whether the process itself sent the descriptor. Such a segment can be read after the process
    /// ended.
    bool is_handed_over = false;
    /// Whether `process` is the number under which this process sees the other one. The folder may
    /// contain files of processes in other containers.
    bool is_of_our_space = true;
    std::uint64_t start_ticks = 0;  // 0 for a process that this one does not see
    std::string name;               // of the process
};

/// A segment, or the reason why there is none.
struct Finding {
    std::optional<FoundSegment> segment;
    SegmentProblem problem = {AttachFailure::no_process, ""};
    /// Whether the file of the segment exists but is not yet initialized.
    bool is_being_made = false;
};

/// Finds a segment through /proc, or else in the folder. Throws std::bad_alloc.
Finding find_segment(std::uint64_t process);
/// Returns whether a process in which no segment was found has one whose descriptor it closed.
/// Takes longer the more mappings the process has.
bool has_closed_segment(std::uint64_t process);
/// Finds a segment in the folder of TENSORPOOL_STATISTICS_DIR only. A segment that is found belongs
/// to a running process.
Finding find_in_folder(std::uint64_t process);
/// Finds the segment behind a descriptor that the process itself sent. The process may have ended.
Finding find_handed_over(platform::ObservedFile file);
/// Returns the folder of TENSORPOOL_STATISTICS_DIR; "" if the variable is not set.
std::string segment_folder();
/// Returns whether a file in the folder belongs to a process that ended.
bool is_dead(std::uint64_t process, const platform::ObservedFile& file);

/// Checks that the process is still the one whose segment was found; `file` is that segment.
/// Returns the problem if it is not.
std::optional<SegmentProblem> look_after(const FoundSegment& segment,
                                         const platform::ObservedFile& file);

}  // namespace tensorpool::read
