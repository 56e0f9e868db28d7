#include "read/segment_view.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "platform/platform.hpp"
#include "read/described_table.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;

const SegmentProblem cannot_map = {AttachFailure::system,
                                   "the system could not map its segment; see `ulimit -v`"};
const SegmentProblem was_cut = {AttachFailure::damaged,
                                "its segment has been truncated; restart the "
                                "process to read it again"};

}  // namespace

SegmentView::SegmentView(SegmentView&& other) noexcept
    : file_(std::move(other.file_)),
      map_(std::exchange(other.map_, nullptr)),
      copies_{std::exchange(other.copies_[0], nullptr), std::exchange(other.copies_[1], nullptr)},
      earlier_(other.earlier_),
      later_(other.later_),
      tables_(std::move(other.tables_)),
      epoch_(other.epoch_) {}

SegmentView& SegmentView::operator=(SegmentView&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(map_, other.map_);
    std::swap(copies_, other.copies_);
    std::swap(earlier_, other.earlier_);
    std::swap(later_, other.later_);
    std::swap(tables_, other.tables_);
    std::swap(epoch_, other.epoch_);
    return *this;
}

SegmentView::~SegmentView() {
    let_go();
}

void SegmentView::let_go() noexcept {
    if (map_ != nullptr) platform::unmap(const_cast<void*>(map_), segment_bytes);
    for (void* const copy : copies_) {
        if (copy != nullptr) platform::unmap(copy, segment_bytes);
    }
}

std::optional<SegmentProblem> SegmentView::open() {
    SegmentHeader header{};
    if (auto problem = read_header(file_, header)) return problem;
    // The size is checked again: the file could be truncated until it was sealed.
    if (file_.is_sealed() && file_.bytes() >= segment_bytes) {
        map_ = file_.map(segment_bytes);
        if (map_ == nullptr) return cannot_map;
        earlier_ = later_ = SegmentImage(map_);
        return std::nullopt;
    }
    for (void*& copy : copies_) {
        copy = platform::map(segment_bytes, platform::page_bytes());
        if (copy == nullptr) throw std::bad_alloc();
    }
    earlier_ = SegmentImage(copies_[0]);
    later_ = SegmentImage(copies_[1]);
    return std::nullopt;
}

std::optional<SegmentProblem> SegmentView::refresh() {
    if (is_copy()) {
        if (auto problem = copy(copies_[0], earlier_)) return problem;
        epoch_ = earlier_.header().epoch.load(std::memory_order_relaxed);
        return copy(copies_[1], later_);
    }
    if (auto problem = problem_of(later_.header())) return problem;
    // Pairs with the release store after a change: the whole change is visible.
    epoch_ = later_.header().epoch.load(std::memory_order_acquire);
    later_.count();
    earlier_ = later_;
    return std::nullopt;
}

bool SegmentView::is_steady() const noexcept {
    if (epoch_ % 2 != 0) return false;
    if (is_copy()) {
        SegmentHeader now{};
        return copy_header(&now) && now.epoch.load(std::memory_order_relaxed) == epoch_;
    }
    // Pairs with the release fence at the beginning of a change: a reader that saw any word of the
    // change sees the epoch.
    std::atomic_thread_fence(std::memory_order_acquire);
    return later_.header().epoch.load(std::memory_order_relaxed) == epoch_;
}

bool SegmentView::copy_header(void* to) const noexcept {
    return file_.read(0, to, sizeof(SegmentHeader)) == sizeof(SegmentHeader);
}

std::optional<SegmentProblem> SegmentView::copy(void* to, SegmentImage& image) const {
    if (!copy_header(to)) return was_cut;
    if (auto problem = problem_of(image.header())) return problem;
    image.count();
    const auto read = [&](const void* begin, std::size_t bytes) {
        auto* const into = static_cast<std::byte*>(to);
        const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(begin) - into);
        return bytes == 0 || file_.read(at, into + at, bytes) == bytes;
    };
    for (const SegmentImage::Kind& kind : image.kinds()) {
        if (!read(kind.text.data(), kind.text.size()) ||
            !read(kind.records, kind.used * kind.record_bytes)) {
            return was_cut;
        }
    }
    return std::nullopt;
}

std::shared_ptr<const RecordTable> SegmentView::table(std::size_t kind) {
    if (kind >= later_.kinds().size()) return nullptr;
    tables_.resize(std::max(tables_.size(), kind + 1));
    std::shared_ptr<const RecordTable>& table = tables_[kind];
    const SegmentImage::Kind& described = later_.kinds()[kind];
    if (table == nullptr && described.record_bytes != 0) {
        table = read_table(described.text, described.record_bytes);
    }
    return table;
}

std::optional<SegmentProblem> SegmentView::refresh_timeline() {
    if (!is_copy()) return problem_of(later_.header());
    for (void* const copy : copies_) {
        if (!copy_header(copy)) return was_cut;
        const std::size_t bytes = entry_count * sizeof(EntryRecord);
        auto* const entries = static_cast<std::byte*>(copy) + offset_of<EntryRecord>;
        if (file_.read(offset_of<EntryRecord>, entries, bytes) != bytes) return was_cut;
    }
    drop_rewritten_entries();
    return problem_of(later_.header());
}

// The copy of an entry that is being rewritten may mix two entries. Its ticket changed before its
// words, so the later copy has a different ticket. Such an entry is treated as still being written.
void SegmentView::drop_rewritten_entries() noexcept {
    auto* const entries = const_cast<EntryRecord*>(earlier_.timeline().data());
    for (std::size_t index = 0; index < entry_count; ++index) {
        const auto after = later_.timeline()[index].ticket.load(std::memory_order_relaxed);
        Counter& ticket = entries[index].ticket;
        if (ticket.load(std::memory_order_relaxed) != after) {
            ticket.store(after | 1, std::memory_order_relaxed);
        }
    }
}

}  // namespace tensorpool::read
