#pragma once

#include "platform/platform.hpp"
#include "read/segment_problem.hpp"
#include "statistics/sums/pool_statistics.hpp"

namespace tensorpool::read {

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

using base::read;
using platform::Look;
using platform::ObservedFile;
using platform::OwnName;
using statistics::Name;
using statistics::SegmentHeader;

inline constexpr const char* memory_name = "tensorpool";

inline std::string text_of(const Name& name) {
    std::array<char, Name::bytes> text;
    load_name(name, text.data());
    return text.data();
}

inline bool may_be_same(std::uint64_t one, std::uint64_t other) noexcept {
    return one == 0 || other == 0 || one == other;
}

/// A process may also hold segments of other processes, as a reader or the child of a fork does.
inline bool belongs_to(const SegmentHeader& header, const OwnName& name) noexcept {
    return read(header.process) == name.number &&
           may_be_same(read(header.process_space), name.name_space);
}

/// Keeps the problem that says more: a problem of a segment rather than the absence of one.
inline void keep_better(SegmentProblem& kept, SegmentProblem other) {
    const bool is_segment =
        other.failure == AttachFailure::other_version || other.failure == AttachFailure::damaged;
    if (kept.failure == AttachFailure::no_segment && is_segment) kept = std::move(other);
}

inline Finding among(std::uint64_t process, platform::MemoryFiles&& held) {
    Finding finding;
    finding.problem = problem_of(held.look);
    if (held.files.empty()) return finding;
    const OwnName name = platform::own_name_of(process);
    for (auto& [descriptor, file] : held.files) {
        SegmentHeader header{};
        if (auto problem = read_header(file, header)) {
            finding.is_being_made |= problem->failure == AttachFailure::no_segment;
            keep_better(finding.problem, std::move(*problem));
        } else if (belongs_to(header, name)) {
            FoundSegment& found = finding.segment.emplace();
            found.process = process;
            found.file = std::move(file);
            found.descriptor = descriptor;
            break;
        }
    }
    return finding;
}

inline Finding find_in_memory(std::uint64_t process) {
    Finding finding = among(process, platform::memory_files_of(process, memory_name));
    if (!finding.segment) return finding;
    const auto facts = platform::facts_of(process);
    if (!facts) return {.segment = {}, .problem = problem_of(Look::no_process)};
    finding.segment->start_ticks = facts->start_ticks;
    finding.segment->name = facts->name;
    return finding;
}

inline bool is_of_our_space(const SegmentHeader& header) noexcept {
    return may_be_same(read(header.process_space), platform::identify_process().name_space);
}

/// Returns the process behind a file in the folder, if this process can see it and it still runs.
inline std::optional<platform::ProcessFacts> facts_behind(const SegmentHeader& header) {
    if (!is_of_our_space(header)) return std::nullopt;
    auto facts = platform::facts_of(read(header.process));
    if (facts && !may_be_same(facts->start_ticks, read(header.start_ticks))) return std::nullopt;
    return facts;
}

/// Returns the folder of TENSORPOOL_STATISTICS_DIR; "" if the variable is not set.
inline std::string segment_folder() {
    const char* const folder = platform::environment_variable("TENSORPOOL_STATISTICS_DIR");
    return folder == nullptr ? std::string() : folder;
}

/// Finds a segment in the folder of TENSORPOOL_STATISTICS_DIR only. A segment that is found belongs
/// to a running process.
inline Finding find_in_folder(std::uint64_t process) {
    Finding finding;
    const std::string folder = segment_folder();
    ObservedFile file = folder.empty() ? ObservedFile() : platform::open_in(folder, process);
    if (!file) {
        finding.problem = problem_of(Look::no_process);
        return finding;
    }
    SegmentHeader header{};
    if (auto problem = read_header(file, header)) {
        finding.problem = std::move(*problem);
        return finding;
    }
    const auto facts = facts_behind(header);
    // The lock is checked only after the header is complete, because its maker locks the file
    // before that.
    if (!facts && file.lock() != ObservedFile::Lock::held) return finding;
    FoundSegment& found = finding.segment.emplace();
    found.process = process;
    found.file = std::move(file);
    found.is_in_folder = true;
    found.is_of_our_space = is_of_our_space(header);
    found.start_ticks = facts ? facts->start_ticks : 0;
    found.name = facts ? facts->name : text_of(header.process_name);
    return finding;
}

/// Finds the segment behind a descriptor that the process itself sent. The process may have ended.
inline Finding find_handed_over(ObservedFile file) {
    Finding finding;
    SegmentHeader header{};
    if (!file) {
        finding.problem = {AttachFailure::damaged, "the descriptor is not that of a file"};
    } else if (auto problem = read_header(file, header)) {
        finding.problem = std::move(*problem);
    } else {
        FoundSegment& found = finding.segment.emplace();
        found.process = read(header.process);
        found.is_in_folder = !file.is_sealed();  // no other is not sealed
        found.file = std::move(file);
        found.is_handed_over = true;
        found.is_of_our_space = is_of_our_space(header);
        found.start_ticks = read(header.start_ticks);
        found.name = text_of(header.process_name);
    }
    return finding;
}

/// Returns whether a process in which no segment was found has one whose descriptor it closed.
/// Takes longer the more mappings the process has.
inline bool has_closed_segment(std::uint64_t process) {
    return platform::maps_memory_file(process, memory_name, 0);
}

/// Finds a segment through /proc, or else in the folder. Throws std::bad_alloc.
inline Finding find_segment(std::uint64_t process) {
    Finding finding = find_in_memory(process);
    if (finding.segment) return finding;
    Finding other = find_in_folder(process);
    const bool is_better = other.segment || other.problem.failure == AttachFailure::damaged ||
                           other.problem.failure == AttachFailure::other_version;
    return is_better ? std::move(other) : std::move(finding);
}

/// Returns whether a file in the folder belongs to a process that ended.
inline bool is_dead(std::uint64_t process, const ObservedFile& file) {
    SegmentHeader header{};
    if (read_header(file, header) || read(header.process) != process) return false;
    return file.lock() == ObservedFile::Lock::free && !facts_behind(header);
}

/// Checks that the process is still the one whose segment was found; `file` is that segment.
/// Returns the problem if it is not.
inline std::optional<SegmentProblem> look_after(const FoundSegment& segment,
                                                const ObservedFile& file) {
    if (segment.is_in_folder) {
        if (file.lock() != ObservedFile::Lock::free) return std::nullopt;
    } else if (segment.is_handed_over) {
        const bool counts = segment.is_of_our_space &&
                            platform::maps_memory_file(segment.process, memory_name, file.inode());
        return counts ? std::nullopt : std::optional(ended_problem());
    } else if (platform::holds_file(segment.process, segment.descriptor, file)) {
        return std::nullopt;
    }
    const auto facts = segment.is_of_our_space ? platform::facts_of(segment.process) : std::nullopt;
    // A process that is exiting releases its memory before its files.
    if (!facts || facts->start_ticks != segment.start_ticks || !facts->has_memory) {
        return ended_problem();
    }
    if (segment.is_in_folder) return closed_problem();
    // Either it closed its descriptor and continues to count, or it runs another program.
    const bool still_counts =
        platform::maps_memory_file(segment.process, memory_name, file.inode());
    return still_counts ? std::nullopt : std::optional(other_program_problem());
}

}  // namespace tensorpool::read
