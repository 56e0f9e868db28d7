#include <tensorpool/errors.hpp>

#include "base/text.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using base::FixedText;

void add_headline(FixedText& text, const char* owner, const AllocationFailure& failure) noexcept {
    text.add("tensorpool: %.47s: allocate: %zu B (%s) requested with %s in use and %s committed; ",
             owner, failure.asked, BytesText(failure.asked).c_str(),
             BytesText(failure.in_use).c_str(), BytesText(failure.capacity).c_str());
    text.add("limit met: %.60s (%s)", failure.limit, BytesText(failure.limit_bytes).c_str());
}

/// Adds where the free bytes are, and how much of the failure is due to fragmentation.
void add_free(FixedText& text, const AllocationFailure& failure) noexcept {
    if (!failure.knows_free) return;
    if (failure.free_pages + failure.in_pieces() == 0) {
        text.add("\n  free: nothing, so fragmentation costs nothing");
        return;
    }
    text.add("\n  free: %s in whole pages, the longest run %s; %s between blocks in use",
             BytesText(failure.free_pages).c_str(), BytesText(failure.largest_free).c_str(),
             BytesText(failure.between_blocks).c_str());
    if (failure.with_threads != 0) {
        text.add("; %s kept by other threads", BytesText(failure.with_threads).c_str());
    }
    if (failure.is_fragmentation()) {
        text.add("\n  fragmentation is the only cause: enough is free, but in pieces");
    } else if (failure.missing != 0) {
        text.add("\n  fragmentation costs %s: without it %s would still be missing",
                 BytesText(failure.in_pieces()).c_str(),
                 BytesText(failure.missing - failure.free_pages - failure.in_pieces()).c_str());
    }
}

// Limits are printed as exact bytes because readers may copy them: BytesText rounds down.
void add_remedy(FixedText& text, const AllocationFailure& failure) noexcept {
    if (failure.needed_limit != 0) {
        text.add("\n  it would fit if %.60s were at least %zu B (%s)", failure.limit,
                 failure.needed_limit, BytesText(failure.needed_limit).c_str());
        if (failure.missing != 0 && failure.missing <= failure.in_use) {
            text.add(", or after %zu B (%s) in use were freed in whole pages", failure.missing,
                     BytesText(failure.missing).c_str());
        }
    }
    if (*failure.advice != '\0') text.add("\n  %.160s", failure.advice);
    text.add("%s", failure.details);
}

}  // namespace

AllocationError::AllocationError(const char* owner, const AllocationFailure& failure) noexcept
    : asked_(failure.asked),
      in_use_(failure.in_use),
      capacity_(failure.capacity),
      in_pieces_(failure.in_pieces()),
      largest_free_(failure.largest_free),
      missing_(failure.missing),
      is_fragmentation_(failure.is_fragmentation()) {
    FixedText text(text_, sizeof text_);
    add_headline(text, owner, failure);
    add_free(text, failure);
    add_remedy(text, failure);
}

AllocationError::AllocationError(const char* owner, std::size_t asked, std::size_t in_use,
                                 std::size_t capacity, const char* limit,
                                 std::size_t limit_bytes) noexcept
    : AllocationError(owner, {.asked = asked,
                              .in_use = in_use,
                              .capacity = capacity,
                              .limit = limit,
                              .limit_bytes = limit_bytes}) {}

}  // namespace tensorpool
