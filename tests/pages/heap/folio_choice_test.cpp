#include "pages/heap/fresh_memory.hpp"

#include <gtest/gtest.h>

namespace tensorpool::pages {
namespace {

using platform::FolioSizes;

constexpr std::uint64_t small_ns = FolioChoice::usual_ns;
constexpr std::uint64_t expensive_ns = 5 * small_ns;

FolioSizes only_huge() noexcept {
    return {.huge = true, .medium = 0};
}
FolioSizes only_medium() noexcept {
    return {.huge = false, .medium = 65536};
}
FolioSizes both() noexcept {
    return {.huge = true, .medium = 65536};
}
FolioSizes neither() noexcept {
    return {};
}

/// Counts the successive granules that request something other than a huge page.
std::uint32_t pause_of(FolioChoice& choice, Folio other = Folio::small) {
    std::uint32_t count = 0;
    for (Folio folio = choice.for_granule(); folio != Folio::huge; folio = choice.for_granule()) {
        EXPECT_EQ(folio, other);
        ++count;
    }
    return count;
}

TEST(FolioChoice, HugePagesAreRequestedWhileTheyAreCheap) {
    FolioChoice choice(only_huge);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(choice.for_granule(), Folio::huge);
        choice.note(Folio::huge, small_ns / 8);
    }
}

TEST(FolioChoice, ExpensiveHugePageBeginsAPauseWithoutRequests) {
    FolioChoice choice(only_huge);
    EXPECT_EQ(choice.for_granule(), Folio::huge);
    choice.note(Folio::huge, expensive_ns);
    EXPECT_EQ(pause_of(choice), FolioChoice::first_pause);
}

TEST(FolioChoice, PausesDoubleUntilAHugePageIsCheapAgain) {
    FolioChoice choice(only_huge);
    for (std::uint32_t pause = FolioChoice::first_pause; pause < FolioChoice::longest_pause;
         pause *= 2) {
        choice.note(Folio::huge, expensive_ns);
        EXPECT_EQ(pause_of(choice), pause);
    }
    for (int i = 0; i < 3; ++i) {
        choice.note(Folio::huge, expensive_ns);
        EXPECT_EQ(pause_of(choice), FolioChoice::longest_pause);
    }
    choice.note(Folio::huge, small_ns);
    choice.note(Folio::huge, expensive_ns);
    EXPECT_EQ(pause_of(choice), FolioChoice::first_pause);
}

TEST(FolioChoice, ExpensiveIsTwiceTheCostOfOtherPages) {
    FolioChoice choice(only_huge);
    for (int i = 0; i < 50; ++i) choice.note(Folio::small, 10 * small_ns);
    choice.note(Folio::huge, 19 * small_ns);
    EXPECT_EQ(pause_of(choice), 0U) << "all pages are expensive on this machine";
    for (int i = 0; i < 50; ++i) choice.note(Folio::small, small_ns / 10);
    choice.note(Folio::huge, small_ns / 4);
    EXPECT_EQ(pause_of(choice), FolioChoice::first_pause);
}

TEST(FolioChoice, OneExpensiveGranuleDoesNotHideExpensiveHugePages) {
    FolioChoice choice(only_huge);
    choice.note(Folio::small, expensive_ns);
    choice.note(Folio::huge, expensive_ns);
    EXPECT_EQ(pause_of(choice), FolioChoice::first_pause);
}

TEST(FolioChoice, MediumPagesComeFirstAndInPauses) {
    FolioChoice choice(both);
    EXPECT_EQ(pause_of(choice, Folio::medium), FolioChoice::first_pause);
    choice.note(Folio::huge, expensive_ns);
    EXPECT_EQ(pause_of(choice, Folio::medium), FolioChoice::first_pause);
}

TEST(FolioChoice, SplitsOfMappingsForMediumPagesAreLimited) {
    FolioChoice choice(both);
    std::uint32_t split = 0;
    for (std::uint32_t i = 0; i < 8 * FolioChoice::max_split; ++i) {
        const Folio folio = choice.for_granule();
        if (folio == Folio::huge) choice.note(Folio::huge, expensive_ns);
        if (folio == Folio::medium) ++split;
    }
    EXPECT_EQ(split, FolioChoice::max_split);
}

TEST(FolioChoice, TemporaryRequestsDoNotCountAsSplits) {
    FolioChoice choice(both);
    for (std::uint32_t i = 0; i < 8 * FolioChoice::max_split; ++i) {
        const Folio folio = choice.for_granule(FolioChoice::Advice::temporary);
        ASSERT_NE(folio, Folio::small);
        if (folio == Folio::huge) choice.note(Folio::huge, expensive_ns);
    }
    EXPECT_EQ(choice.for_granule(), Folio::medium);
}

TEST(FolioChoice, WithoutHugePagesMediumPagesNeedNoSplit) {
    FolioChoice choice(only_medium);
    for (std::uint32_t i = 0; i < 2 * FolioChoice::max_split; ++i)
        ASSERT_EQ(choice.for_granule(), Folio::medium);
}

TEST(FolioChoice, PartOfAGranuleRequestsMediumPages) {
    EXPECT_EQ(FolioChoice(only_huge).for_part(), Folio::small);
    EXPECT_EQ(FolioChoice(both).for_part(), Folio::medium);
    EXPECT_EQ(FolioChoice(only_medium).for_part(), Folio::medium);
}

TEST(FolioChoice, WithoutLargerPagesNoneAreRequested) {
    FolioChoice choice(neither);
    EXPECT_EQ(choice.for_granule(), Folio::small);
    EXPECT_EQ(choice.for_part(), Folio::small);
}

}  // namespace
}  // namespace tensorpool::pages
