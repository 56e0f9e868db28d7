#include "inspect/pages_in_use.hpp"

namespace tensorpool::command::inspect {

void PagesInUse::change(Range range, bool added) {
    if (range.begin == range.end) return;
    const std::uint64_t first = range.begin / page_bytes_;
    const std::uint64_t last = (range.end - 1) / page_bytes_;
    const bool whole_first = range.begin % page_bytes_ == 0;
    const bool whole_last = range.end % page_bytes_ == 0;
    if (first == last) {
        if (whole_first && whole_last) {
            inner_ += added ? 1 : std::uint64_t{0} - 1;
        } else {
            change_page(first, added);
        }
        return;
    }
    if (!whole_first) change_page(first, added);
    if (!whole_last) change_page(last, added);
    const std::uint64_t inner = last - first + 1 - (whole_first ? 0U : 1U) - (whole_last ? 0U : 1U);
    inner_ += added ? inner : 0 - inner;
}

void PagesInUse::change_page(std::uint64_t page, bool added) {
    std::uint32_t& blocks = shared_[page];
    blocks += added ? 1U : 0U - 1U;
    if (blocks == 0) shared_.erase(page);
}

}  // namespace tensorpool::command::inspect
