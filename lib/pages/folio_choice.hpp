#pragma once

#include <atomic>
#include <cstdint>

#include "platform/platform.hpp"

namespace tensorpool::pages {

/// Sizes of the system's pages: the usual one, one between that and a huge page (16 KiB to 1 MiB on
/// newer Linux), and huge ones.
enum class Folio : std::uint8_t { small, medium, huge };

/// Decides which pages the next granule of fresh memory asks for, from what the last ones cost.
///
/// Huge pages are the cheapest where the system has them at hand: 90 µs for 2 MiB on the machine
/// measured, where small ones take 650 µs. They are the dearest where it first has to find memory:
/// under a hypervisor that takes free memory back, 5,000 µs (perf/results/fresh.md). Which of the
/// two it will be cannot be seen beforehand, so after a dear one a pause begins, in which granules
/// ask for medium pages, or for none. Each pause after a dear one is twice as long as the last.
///
/// Thread-safe. All words are relaxed: they are guesses, and none guards memory.
class FolioChoice {
public:
    using Sizes = platform::FolioSizes (*)() noexcept;

    // Pauses, in granules of 2 MiB. One dear huge page costs as much as some eight granules of
    // small pages: a sixteenth of those in the first pause, and ever less in the next ones.
    static constexpr std::uint32_t first_pause = 128;
    static constexpr std::uint32_t longest_pause = 4096;
    // Where huge pages are on, each granule of medium pages is a mapping of its own and so is the
    // page before it, until the pool ends or gives up the wish: at most 1,000 mappings of the
    // 65,530 that Linux allows. What was given up or lent back counts too: so many granules in the
    // life of the process.
    static constexpr std::uint32_t max_split = 500;
    // What a granule of small pages is taken to cost until one was measured: 2 µs a page.
    static constexpr std::uint64_t usual_ns = 1'000'000;

    constexpr explicit FolioChoice(Sizes sizes) noexcept : sizes_of_system_(sizes) {}

    /// How long a granule's wish for larger pages stays.
    enum class Wish : bool { passes, stays };
    /// What a granule shall ask for that is about to be touched for the first time.
    Folio for_granule(Wish wish = Wish::stays) noexcept;
    /// The same for less than a granule, which no huge page fits into.
    Folio for_part() noexcept;
    /// The nanoseconds that the thread ran while a granule was touched for the first time: the
    /// whole of it, or one page of a huge one.
    void note(Folio folio, std::uint64_t ns) noexcept;

private:
    // Bits of `known_`.
    static constexpr unsigned looked = 1;
    static constexpr unsigned has_medium = 2;
    static constexpr unsigned has_huge = 4;
    bool has(unsigned what) noexcept;
    unsigned look() noexcept;

    const Sizes sizes_of_system_;
    std::atomic<unsigned> known_ = 0;
    std::atomic<std::uint32_t> paused_ = 0;  // granules until a huge page is tried again
    std::atomic<std::uint32_t> next_pause_ = first_pause;
    std::atomic<std::uint32_t> split_ =
        0;  // granules that ever asked for medium pages, and kept the wish
    std::atomic<std::uint64_t> other_ns_ = usual_ns;
};

/// The process's.
FolioChoice& folio_choice() noexcept;

}  // namespace tensorpool::pages
