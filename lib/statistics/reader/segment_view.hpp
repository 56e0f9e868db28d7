#pragma once

#include <optional>

#include "platform/files/observed_file.hpp"
#include "statistics/reader/segment_problem.hpp"
#include "statistics/segment/segment_image.hpp"

namespace tensorpool::statistics {

/// Another process's segment. One that is sealed is mapped; of any other, which might be cut short
/// at any time, what is in use is copied: so nothing that happens to it brings a signal.
///
/// Figures are summed from two images, what was freed from the earlier one and what was allocated
/// from the later one. Of a map both are the same.
class SegmentView {
public:
    explicit SegmentView(platform::ObservedFile file) noexcept : file_(std::move(file)) {}
    SegmentView(SegmentView&& other) noexcept;
    SegmentView& operator=(SegmentView&& other) noexcept;
    ~SegmentView();

    /// Before all else. Nothing: the segment can be read.
    std::optional<SegmentProblem> open();
    /// Looks again, both images; `is_steady` then tells whether structure stood still since.
    std::optional<SegmentProblem> refresh();
    bool is_steady() const noexcept;
    /// Looks again at the header and the timeline only; both are then those of the earlier image.
    std::optional<SegmentProblem> refresh_timeline();

    const SegmentImage& earlier() const noexcept { return earlier_; }
    const SegmentImage& later() const noexcept { return later_; }
    const platform::ObservedFile& file() const noexcept { return file_; }

private:
    bool is_copy() const noexcept { return copies_[0] != nullptr; }
    bool copy_header(void* to) const noexcept;
    std::optional<SegmentProblem> copy(void* to, SegmentImage& image) const;
    void drop_rewritten_entries() noexcept;
    void let_go() noexcept;

    platform::ObservedFile file_;
    const void* map_ = nullptr;
    void* copies_[2] = {};  // each with room for a segment, of which only pages in use take memory
    SegmentImage earlier_;
    SegmentImage later_;
    std::uint64_t epoch_ = 0;
};

}  // namespace tensorpool::statistics
