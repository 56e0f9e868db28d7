#pragma once

#include "read/segment_problem.hpp"
#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_image.hpp"

namespace tensorpool::read {

/// The segment of another process. A sealed segment is mapped. Any other might be truncated at any
/// time, so the records in use are copied. Reading therefore never raises a signal.
///
/// Statistics are summed from two images: frees from the earlier one and allocations from the later
/// one. For a mapped segment both are the same.
class SegmentView {
public:
    explicit SegmentView(platform::ObservedFile file) noexcept : file_(std::move(file)) {}
    /// The segment of this process, which is open already.
    explicit SegmentView(const statistics::SegmentHeader& own) noexcept
        : earlier_(&own), later_(&own) {}
    SegmentView(const SegmentView&) = delete;
    SegmentView& operator=(const SegmentView&) = delete;
    ~SegmentView();

    /// Opens the segment; must be called first. Returns nothing if the segment can be read.
    std::optional<SegmentProblem> open();
    /// Reads both images again. `is_steady` then returns whether the structure has been unchanged
    /// since.
    std::optional<SegmentProblem> refresh();
    bool is_steady() const noexcept;
    /// Reads only the header and the timeline again. Both then belong to the earlier image.
    std::optional<SegmentProblem> refresh_timeline();

    const statistics::SegmentImage& earlier() const noexcept { return earlier_; }
    const statistics::SegmentImage& later() const noexcept { return later_; }
    /// Returns the table of a kind of the later image; nullptr if its description is not sound.
    /// Throws std::bad_alloc.
    std::shared_ptr<const statistics::RecordTable> table(std::size_t kind);
    const platform::ObservedFile& file() const noexcept { return file_; }

private:
    bool is_copy() const noexcept { return copies_[0] != nullptr; }
    bool copy_header(void* to) const noexcept;
    std::optional<SegmentProblem> copy(void* to, statistics::SegmentImage& image) const;
    void drop_rewritten_entries() noexcept;

    platform::ObservedFile file_;
    const void* map_ = nullptr;
    void* copies_[2] = {};  // each has room for a segment, of which only used pages take memory
    statistics::SegmentImage earlier_;
    statistics::SegmentImage later_;
    // The tables of kinds, as they were when a kind was first seen.
    std::vector<std::shared_ptr<const statistics::RecordTable>> tables_;
    std::uint64_t epoch_ = 0;
};

}  // namespace tensorpool::read
