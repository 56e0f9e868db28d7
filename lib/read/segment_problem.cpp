#include "read/segment_problem.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;
using base::read;
using platform::Look;

bool has_our_layout(const SegmentHeader& header) noexcept {
    bool fits = read(header.bytes) == segment_bytes && read(header.header_bytes) == header_bytes;
    for_each_first_kind([&]<class Record>() {
        const Region& region = header.region<Record>();
        const bool is_whole = read(region.record_count) == count_of<Record>;
        const bool may_be_cut =
            offset_of<Record> + sizeof(Record) * count_of<Record> > small_segment_bytes;
        fits = fits && read(region.offset) == offset_of<Record> &&
               read(region.record_bytes) == sizeof(Record) &&
               (is_whole || (may_be_cut && read(region.record_count) < count_of<Record>)) &&
               read(region.used) <= read(region.record_count);
    });
    return fits;
}

/// Returns whether the other kinds lie one after the other, without gaps.
bool is_packed(const SegmentHeader& header) noexcept {
    const std::uint64_t kinds = header.kinds.load(std::memory_order_acquire);
    if (kinds < first_kind_count || kinds > max_kinds) return false;
    std::uint64_t end = first_end;
    for (std::size_t i = first_kind_count; i != kinds; ++i) {
        const Region& region = header.regions[i];
        const std::uint64_t bytes = read(region.record_bytes);
        const std::uint64_t count = read(region.record_count);
        if (read(region.offset) != end || bytes == 0 || bytes % alignof(PoolRecord) != 0 ||
            bytes > segment_bytes || count > segment_bytes || read(region.used) > count) {
            return false;
        }
        if (count == 0) continue;  // there was no room
        end = read(region.offset) + bytes * count;
        if (end > segment_bytes) return false;
    }
    return end == read(header.end);
}

SegmentProblem cut_short(std::uint64_t bytes) {
    return {AttachFailure::damaged, "its segment is truncated: " + std::to_string(bytes) +
                                        " bytes, expected " + std::to_string(segment_bytes) +
                                        "; restart the process to read it again"};
}

}  // namespace

std::optional<SegmentProblem> problem_of(const SegmentHeader& header) {
    // Pairs with the release store of the process that made the segment: the rest of it is
    // initialized.
    const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
    if (magic == 0) {
        return SegmentProblem{AttachFailure::no_segment,
                              "its segment is being initialized; try again in a moment"};
    }
    if (magic != segment_magic) {
        return SegmentProblem{AttachFailure::damaged,
                              "the file is not a segment, or has been overwritten; restart the "
                              "process to read it again"};
    }
    if (read(header.version) != segment_version) {
        return SegmentProblem{AttachFailure::other_version,
                              "its tensorpool uses segment version " +
                                  std::to_string(read(header.version)) + ", this reader version " +
                                  std::to_string(segment_version) +
                                  "; use the command of the tensorpool that the process uses"};
    }
    if (!has_our_layout(header) || !is_packed(header)) {
        return SegmentProblem{AttachFailure::damaged,
                              "the header of its segment has been overwritten; restart the "
                              "process to read it again"};
    }
    return std::nullopt;
}

std::optional<SegmentProblem> read_header(const platform::ObservedFile& file, SegmentHeader& to) {
    if (file.read(0, &to, sizeof to) != sizeof to) return cut_short(file.bytes());
    if (auto problem = problem_of(to)) return problem;
    if (file.bytes() < segment_bytes) return cut_short(file.bytes());
    return std::nullopt;
}

SegmentProblem problem_of(Look look) {
    switch (look) {
        case Look::allowed:
            return {AttachFailure::no_segment,
                    "it has no statistics to show: it holds no pool, was built with an older "
                    "tensorpool, or runs with TENSORPOOL_STATISTICS=off"};
        case Look::no_process:
            return {AttachFailure::no_process,
                    "there is no such process; `tensorpool ls` lists the processes"};
        case Look::other_user:
            return {
                AttachFailure::other_user,
                "it belongs to another user; read it as that user or as root, or set for both one "
                "folder in TENSORPOOL_STATISTICS_DIR and read it as root"};
        case Look::other_group:
            return {AttachFailure::other_user,
                    "it runs with another group than this reader; read it with that group (newgrp) "
                    "or as root, or start it with TENSORPOOL_STATISTICS_DIR"};
        case Look::more_capabilities:
            return {AttachFailure::more_privileged,
                    "it has capabilities that this reader lacks; read it as root, or start it with "
                    "TENSORPOOL_STATISTICS_DIR"};
        case Look::other_name_space:
            return {AttachFailure::more_privileged,
                    "it is in a user name space, such as a container's, that this reader may not "
                    "read; read it from inside, as root outside, or start it with "
                    "TENSORPOOL_STATISTICS_DIR set to a folder visible to both"};
        case Look::not_dumpable:
            return {AttachFailure::not_dumpable,
                    "it does not permit inspection, like set-uid programs (prctl PR_SET_DUMPABLE); "
                    "read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
        case Look::refused:
            break;
    }
    return {
        AttachFailure::system,
        "the system does not permit reading it, by a rule such as those of SELinux, AppArmor or "
        "seccomp; read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
}

SegmentProblem closed_problem() {
    return {AttachFailure::closed,
            "it closed the descriptor of its segment, like programs that close all unknown "
            "descriptors; start it with TENSORPOOL_STATISTICS_DIR, or exclude descriptors of "
            "memfd:tensorpool from closing"};
}

SegmentProblem ended_problem() {
    return {AttachFailure::ended, "it has ended"};
}

SegmentProblem other_program_problem() {
    return {AttachFailure::ended, "it runs another program now; attach to it again"};
}

}  // namespace tensorpool::read
