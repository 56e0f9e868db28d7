#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "pages/block_states.hpp"
#include "pages/page_map.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

/// A run of pages: a bucket's, a large block, or a free extent. One record for all, out of band.
/// The page heap's lock guards it while it is an extent; its bucket's lock guards what is below the
/// line; a large block's belongs to its holder.
struct alignas(64) Span
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    PageNumber first_page = 0;
    PageCount pages = 0;
    PageKind kind = PageKind::none;
    /// Reads as zeros: committed and not handed out since.
    bool clean = false;
    /// Huge pages were asked for.
    bool huge = false;
    /// Of a free large block that waits: the retention period in which it was freed.
    std::uint32_t period = 0;
    /// Of a large block: what was asked for; with checks 0 when it is not in use.
    /// Relaxed: its holder writes it, and whoever asks about any address may read it meanwhile.
    std::atomic<std::uint64_t> requested_bytes = 0;

    // A bucket's span ------------------------------------------------------------------------
    // Blocks [0, carved) have been handed out at least once; of these, `home` have their bit set
    // and may be handed out again. All others are in use, in a magazine, or not touched yet.
    std::uint16_t blocks = 0;
    std::uint16_t carved = 0;
    std::uint16_t home = 0;
    bool listed = false;
    std::uint8_t fullness = 0;  // of a listed one: which list of its bucket
    /// With checks. Read without the lock too: null while the span is no bucket's.
    std::atomic<BlockStates*> states = nullptr;
    static constexpr unsigned max_blocks = 1024;
    std::uint64_t home_bits[max_blocks / 64] = {};

    PageNumber end_page() const noexcept { return first_page + pages; }
    std::size_t bytes() const noexcept { return std::size_t{pages} << page_shift; }
    /// Whether it shares no page of the system with its neighbours. What is there is not dropped,
    /// and does not move.
    bool is_of_whole_pages() const noexcept {
        return (std::size_t{first_page | pages} << page_shift) % platform::page_bytes() == 0;
    }
};

using SpanList = boost::intrusive::list<Span, boost::intrusive::constant_time_size<false>>;

}  // namespace tensorpool::pages
